import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Tracks every captured frame: encoded, dropped by the capture queue, or in progress.
final class FrameLedger: Sendable {
    /// How long after a drop the encoder may count as too slow.
    private static let memory: Double = 2
    /// It counts as too slow if so many frames and this share were dropped, of those that arrived in the last two to four
    /// seconds. A single frame is late on any machine.
    private static let slow = (frames: 2, share: 0.05)
    /// How many frames may wait. The queue holds 2 and drops the oldest, and one is on its way.
    private static let longestQueue = 16
    /// An encoder hangs if so many frames arrive in at least so many seconds and none is encoded.
    private static let silence = (frames: 60, seconds: 5.0)

    /// The frames that had arrived by a time, and those of them that were dropped.
    private struct Mark {
        /// Nil before the first frame.
        var time: MediaTime?
        var (arrived, dropped) = (0, 0)
    }

    private struct State {
        var counts = MediaStatistics.VideoEncoder()
        /// Timestamps of the frames in the queue, oldest first. Momentarily up to three.
        var queued: [UInt64] = []
        var lastDrop: MediaTime?
        /// Of two to four seconds ago, or of the beginning, and the next one.
        var (old, new) = (Mark(), Mark())
        /// The frames that have arrived since the last encoded one, and when the first of them did.
        var unanswered: (frames: Int, since: MediaTime)?
        var isSilenceReported = false
        var isClosed = false
        var onIdle: DispatchSemaphore?

        mutating func drop(at time: MediaTime) {
            queued.removeFirst()
            counts.droppedBeforeEncoder += 1
            lastDrop = time
        }

        /// Keeps the counts of now for the next two to four seconds, if it is time.
        mutating func mark(at time: MediaTime) {
            guard let since = new.time else {
                new.time = time
                return
            }
            guard time.seconds(since: since) >= FrameLedger.memory else { return }
            old = new
            new = Mark(time: time, arrived: arrived, dropped: counts.droppedBeforeEncoder)
        }

        func isSlow(at time: MediaTime) -> Bool {
            guard let lastDrop, time.seconds(since: lastDrop) <= FrameLedger.memory else { return false }
            let dropped = counts.droppedBeforeEncoder - old.dropped
            let share = FrameLedger.slow.share * Double(arrived - old.arrived)
            return dropped >= FrameLedger.slow.frames && Double(dropped) >= share
        }

        private var arrived: Int { counts.captured - counts.droppedForRate }

        var underWay: Int {
            counts.captured - counts.encoded - counts.droppedBeforeEncoder - counts.droppedForRate
        }
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> MediaTime
    private let onSilence: @Sendable (_ frames: Int) -> Void

    /// - Parameter onSilence: called once, for an encoder that gets frames and delivers none. Must not block.
    init(
        now: @escaping @Sendable () -> MediaTime = { GStreamer.now }, onSilence: @escaping @Sendable (Int) -> Void
    ) {
        (self.now, self.onSilence) = (now, onSilence)
    }

    /// A frame enters the queue. Returns false if the pipeline is stopping and the frame must not pass.
    func captured(_ timestamp: UInt64) -> Bool {
        let (isOpen, silent) = state.withLock { state -> (Bool, Int?) in
            guard !state.isClosed else { return (false, nil) }
            state.mark(at: now())
            state.counts.captured += 1
            state.queued.append(timestamp)
            // The encoder takes none.
            if state.queued.count > Self.longestQueue { state.drop(at: now()) }
            return (true, silence(&state))
        }
        if let silent { onSilence(silent) }
        return isOpen
    }

    /// The number of frames without an answer, if the encoder has begun to hang.
    private func silence(_ state: inout State) -> Int? {
        let (frames, since) = state.unanswered ?? (0, now())
        state.unanswered = (frames + 1, since)
        guard frames >= Self.silence.frames, !state.isSilenceReported,
            now().seconds(since: since) >= Self.silence.seconds
        else { return nil }
        state.isSilenceReported = true
        return frames
    }

    /// A frame that the network has no room for. It does not enter the queue.
    func droppedForRate() {
        state.withLock { state in
            state.counts.captured += 1
            state.counts.droppedForRate += 1
        }
    }

    /// A frame leaves the queue for the encoder. Earlier frames that never left were dropped. Returns how many.
    func left(_ timestamp: UInt64) -> Int {
        state.withLock { state in
            var dropped = 0
            while let first = state.queued.first {
                if first == timestamp {
                    state.queued.removeFirst()
                    break
                }
                state.drop(at: now())
                dropped += 1
            }
            return dropped
        }
    }

    func encoded(bytes: Int, isKeyframe: Bool) {
        state.withLock { state in
            state.counts.encoded += 1
            state.unanswered = nil
            state.counts.bytes += bytes
            state.counts.keyframes += isKeyframe ? 1 : 0
            if state.underWay == 0 { state.onIdle?.signal() }
        }
    }

    /// Changes the figures that do not count frames.
    func update(_ body: (inout MediaStatistics.VideoEncoder) -> Void) {
        state.withLock { body(&$0.counts) }
    }

    /// Accepts no more frames, and waits until those in progress are encoded.
    func close(waiting limit: DispatchTimeInterval) {
        let semaphore = DispatchSemaphore(value: 0)
        let isIdle = state.withLock { state in
            state.isClosed = true
            state.onIdle = semaphore
            return state.underWay == 0
        }
        if !isIdle { _ = semaphore.wait(timeout: .now() + limit) }
    }

    /// No thread runs any more, so the remaining frames will not be encoded.
    func settle() {
        state.withLock { state in
            state.counts.droppedBeforeEncoder += state.underWay
            state.queued.removeAll()
            state.onIdle = nil
        }
    }

    private let number = EncoderNumber.next()

    var statistics: MediaStatistics.VideoEncoder {
        state.withLock { state in
            var counts = state.counts
            counts.encoder = number
            counts.inFlight = state.underWay
            counts.encoderKeepsUp = !state.isSlow(at: now())
            return counts
        }
    }
}

/// Numbers the encoders of this process.
enum EncoderNumber {
    private static let last = Atomic<UInt64>(0)

    /// From 1.
    static func next() -> UInt64 { last.wrappingAdd(1, ordering: .relaxed).newValue }
}

import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Tracks every captured frame: encoded, dropped by the capture queue, or in progress.
final class FrameLedger: Sendable {
    /// How long after a drop the encoder counts as too slow.
    private static let memory: Double = 2

    private struct State {
        var counts = MediaStatistics.VideoEncoder()
        /// Timestamps of the frames in the queue, oldest first. Momentarily up to three.
        var queued: [UInt64] = []
        var lastDrop: MediaTime?
        var isClosed = false
        var onIdle: DispatchSemaphore?

        mutating func drop() {
            counts.droppedBeforeEncoder += 1
            lastDrop = GStreamer.now
        }

        var underWay: Int {
            counts.captured - counts.encoded - counts.droppedBeforeEncoder - counts.droppedForRate
        }
    }

    private let state = Mutex(State())

    /// A frame enters the queue. Returns false if the pipeline is stopping and the frame must not pass.
    func captured(_ timestamp: UInt64) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.counts.captured += 1
            state.queued.append(timestamp)
            return true
        }
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
                state.queued.removeFirst()
                if first == timestamp { break }
                state.drop()
                dropped += 1
            }
            return dropped
        }
    }

    func encoded(bytes: Int, isKeyframe: Bool) {
        state.withLock { state in
            state.counts.encoded += 1
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

    var statistics: MediaStatistics.VideoEncoder {
        state.withLock { state in
            var counts = state.counts
            counts.inFlight = state.underWay
            counts.encoderKeepsUp = state.lastDrop.map { GStreamer.now.seconds(since: $0) > Self.memory } ?? true
            return counts
        }
    }
}

internal import ClientCore
internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol

/// A running decoding pipeline.
protocol Decoding: Sendable {
    func push(_ packet: RawSpan)
    /// Takes the figures of all its elements.
    var statistics: MediaStatistics { get }
    /// Counts them alone.
    var framesDecoded: Int { get }
    /// The newest media and when it is played. Nil before the first.
    var playing: PlayedMedia? { get }
    /// Delays the playout for lip-sync.
    func hold(seconds: Double)
}

/// A requested decoding pipeline, running or starting.
protocol DecodingTask: Sendable {
    /// Returns when the pipeline has stopped, and its devices are free.
    func stop() async
}

/// Decodes one video's packets to frames, and decides when to start a failed pipeline again. On the loop only.
///
/// A pipeline that fails is created again while the stream lasts.
final class ReceivingPipeline {
    /// A pipeline's report to the loop.
    enum Notice: Sendable {
        case running(any Decoding)
        case failed(MediaError)
    }

    /// The session's task after a notice.
    enum Outcome: Equatable {
        case nothing
        /// The new decoder needs a keyframe.
        case requestKeyframe
        /// Call `retry` after this time. `isNews` is false if the failure follows a reported one.
        case retry(after: TimeInterval, isNews: Bool)
    }

    /// Starts a pipeline after `previous` has stopped, and calls `post` on any thread.
    typealias Launch = (
        _ previous: (any DecodingTask)?, _ post: @escaping @Sendable (Notice) -> Void
    ) -> any DecodingTask

    private enum Phase {
        /// The pipeline starts. Packets wait, including the first keyframe.
        case starting
        case running(any Decoding)
        case waitingToRetry
        case ended
    }

    /// A keyframe of 1080p has about 150 packets. Packets beyond this number are dropped; the jitter buffer then
    /// detects the gap and requests a keyframe.
    private static let earlyCapacity = 600

    private let monitor: StreamMonitor
    private let launch: Launch
    /// Sends a notice to the loop, with its pipeline's number.
    private let post: @Sendable (Int, Notice) -> Void
    private var phase = Phase.starting
    private var task: (any DecodingTask)?
    private var attempt = 0
    private var early: [[UInt8]] = []
    private var retries = Retries()
    /// The counters of the stream's earlier pipelines.
    private var past = RoomStatistics.Received(streamId: 0, participantId: "", isVideo: false)

    init(
        monitor: StreamMonitor, launch: @escaping Launch,
        post: @escaping @Sendable (Int, Notice) -> Void
    ) {
        self.monitor = monitor
        self.launch = launch
        self.post = post
    }

    func start() {
        phase = .starting
        attempt += 1
        task = launch(task) { [attempt, post] notice in post(attempt, notice) }
    }

    func receive(_ packet: Span<UInt8>) {
        switch phase {
        case .running(let decoding): decoding.push(packet.bytes)
        case .starting:
            guard early.count < Self.earlyCapacity else { return }
            early.append(packet.indices.map { packet[$0] })
        case .waitingToRetry, .ended: break
        }
    }

    func handle(_ notice: Notice, of number: Int, now: MonotonicTime) -> Outcome {
        guard number == attempt else { return .nothing }
        switch (notice, phase) {
        case (.running(let decoding), .starting):
            for packet in early { decoding.push(packet.span.bytes) }
            early = []
            phase = .running(decoding)
            defer { retries.succeeded(at: now) }
            return retries.failures > 0 ? .requestKeyframe : .nothing
        case (.failed, .starting), (.failed, .running):
            let delay = retries.failed(at: now)
            release()
            phase = .waitingToRetry
            return .retry(after: delay, isNews: retries.failures == 1)
        case (_, .waitingToRetry), (_, .ended), (.running, .running): return .nothing
        }
    }

    /// Call when the time of `Outcome.retry` has passed for pipeline `number`.
    func retry(after number: Int) {
        guard number == attempt else { return }
        if case .ended = phase { return }
        release()
        start()
    }

    func end() {
        release()
        phase = .ended
    }

    /// Ends the pipeline and keeps its counters.
    private func release() {
        if case .running(let decoding) = phase { past.add(decoding.statistics) }
        early = []
        guard let task else { return }
        Task.detached { await task.stop() }
    }

    /// Nil while it does not run.
    var playing: PlayedMedia? {
        guard case .running(let decoding) = phase else { return nil }
        return decoding.playing
    }

    func hold(seconds: Double) {
        if case .running(let decoding) = phase { decoding.hold(seconds: seconds) }
    }

    /// Of all pipelines of the stream.
    var framesDecoded: Int {
        guard case .running(let decoding) = phase else { return past.framesDecoded }
        return past.framesDecoded + decoding.framesDecoded
    }

    func fill(_ statistics: inout RoomStatistics.Received) {
        statistics.framesReceived += past.framesReceived
        statistics.framesDecoded += past.framesDecoded
        statistics.packetsLate += past.packetsLate
        if case .running(let decoding) = phase { statistics.add(decoding.statistics) }
    }
}

extension RoomStatistics.Received {
    fileprivate mutating func add(_ counted: MediaStatistics) {
        if let input = counted.rtpInputs[ReceivingGraph.input] {
            framesReceived += input.framesReceived
            framesDecoded += input.framesDecoded
            packetsLate += input.packetsLate
            playoutDelayMilliseconds = input.playoutDelay.map { $0 * 1000 }
        }
    }
}

internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol

/// A decoding pipeline that runs.
protocol Decoding: Sendable {
    func push(_ packet: RawSpan)
    var statistics: MediaStatistics { get }
}

/// A decoding pipeline that has been asked for, whether it runs yet or not.
protocol DecodingTask: Sendable {
    /// Returns when it has stopped and its devices are free.
    func stop() async
}

/// The engine's own sink: from the packets of one stream to its pictures or its sound. On the loop only.
///
/// A pipeline that fails (a headset is pulled, a decoder gives up) is made again for as long as the stream lasts.
final class ReceivingPipeline: IncomingSink {
    /// What a pipeline reports to the loop.
    enum Notice: Sendable {
        case running(any Decoding)
        case failed(MediaError)
    }

    /// What the session is to do about it.
    enum Outcome: Equatable {
        case nothing
        /// What was decoded before is of no use to the new decoder.
        case requestKeyframe
        /// Call `retry` then. A failure that follows another is not told again.
        case retry(after: TimeInterval, isNews: Bool)
    }

    /// Starts a pipeline once `previous` has stopped, and calls `post`, on any thread.
    typealias Launch = (
        _ previous: (any DecodingTask)?, _ post: @escaping @Sendable (Notice) -> Void
    ) -> any DecodingTask

    private enum Phase {
        /// Packets wait, the first keyframe among them.
        case starting
        case running(any Decoding)
        case waitingToRetry
        case ended
    }

    /// A keyframe of 1080p is some 150 packets; what comes beyond this is dropped, and the jitter buffer
    /// asks for a keyframe when it finds the hole.
    private static let earlyCapacity = 600

    private let monitor: StreamMonitor
    private let wantsToBeHeard: Bool
    private let launch: Launch
    /// Carries a notice to the loop, with the number of the pipeline that it is about.
    private let post: @Sendable (Int, Notice) -> Void
    private var phase = Phase.starting
    private var task: (any DecodingTask)?
    private var attempt = 0
    private var early: [[UInt8]] = []
    private var backOff = BackOff()
    /// What earlier pipelines of the stream have counted.
    private var past = RoomStatistics.Received(streamId: 0, participantId: "", isVideo: false)

    init(
        monitor: StreamMonitor, wantsToBeHeard: Bool, launch: @escaping Launch,
        post: @escaping @Sendable (Int, Notice) -> Void
    ) {
        self.monitor = monitor
        self.wantsToBeHeard = wantsToBeHeard
        self.launch = launch
        self.post = post
    }

    func begin(_ stream: IncomingStream) { start() }

    private func start() {
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

    func senderReport(ntp: NTPTime, rtp: RTPTimestamp) { monitor.senderReport(ntp: ntp, rtp: rtp) }

    func handle(_ notice: Notice, of number: Int, now: MonotonicTime) -> Outcome {
        guard number == attempt else { return .nothing }
        switch (notice, phase) {
        case (.running(let decoding), .starting):
            for packet in early { decoding.push(packet.span.bytes) }
            early = []
            phase = .running(decoding)
            guard backOff.failures > 0 else {
                backOff.succeeded(at: now)
                return .nothing
            }
            // Without its device sound is decoded all the same; the device may come back.
            if wantsToBeHeard, !decoding.isAudible { return .retry(after: BackOff.longest, isNews: false) }
            backOff.succeeded(at: now)
            return .requestKeyframe
        case (.failed, .starting), (.failed, .running):
            let delay = backOff.failed(at: now)
            letGo()
            phase = .waitingToRetry
            return .retry(after: delay, isNews: backOff.failures == 1)
        case (_, .waitingToRetry), (_, .ended), (.running, .running): return .nothing
        }
    }

    /// The time that `Outcome.retry` named has passed since pipeline `number` was the newest.
    func retry(after number: Int) {
        guard number == attempt else { return }
        if case .ended = phase { return }
        letGo()
        start()
    }

    /// The number of the newest pipeline.
    var newest: Int { attempt }

    func end() {
        letGo()
        phase = .ended
    }

    /// The pipeline is over: its numbers stay.
    private func letGo() {
        if case .running(let decoding) = phase { past.add(decoding.statistics) }
        early = []
        guard let task else { return }
        Task.detached { await task.stop() }
    }

    func fill(_ statistics: inout RoomStatistics.Received) {
        statistics.framesReceived += past.framesReceived
        statistics.framesDecoded += past.framesDecoded
        statistics.packetsLate += past.packetsLate
        statistics.audioSecondsRendered += past.audioSecondsRendered
        statistics.audioSecondsAboveSilence += past.audioSecondsAboveSilence
        if case .running(let decoding) = phase { statistics.add(decoding.statistics) }
    }
}

extension Decoding {
    fileprivate var isAudible: Bool { statistics.audioRenderers[ReceivingGraph.speaker]?.isAudible ?? false }
}

extension RoomStatistics.Received {
    fileprivate mutating func add(_ counted: MediaStatistics) {
        if let input = counted.rtpInputs[ReceivingGraph.input] {
            framesReceived += input.framesReceived
            framesDecoded += input.framesDecoded
            packetsLate += input.packetsLate
        }
        if let sound = counted.audioRenderers[ReceivingGraph.speaker] {
            audioSecondsRendered += sound.secondsRendered
            audioSecondsAboveSilence += sound.secondsAboveSilence
            isAudible = sound.isAudible
        }
    }
}

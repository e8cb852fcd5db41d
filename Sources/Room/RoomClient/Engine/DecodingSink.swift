internal import ClientCore
internal import MediaGraph
internal import MediaNodes
internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// Makes the sinks of a connection's streams. On the loop only.
final class SinkMaker {
    private let loop: EventLoop
    private let report: @Sendable (RoomEvent) -> Void
    private let loudspeaker: RoomLoudspeaker
    private let lipSync = RoomLipSync()
    /// Set before the first stream.
    weak var connection: RoomConnection?

    /// - Parameter report: called on the loop, with problems that do not end the room, and events of the loudspeaker.
    init(loop: EventLoop, report: @escaping @Sendable (RoomEvent) -> Void) {
        self.loop = loop
        self.report = report
        loudspeaker = RoomLoudspeaker { report(.loudspeaker($0)) }
    }

    func sinks(to destination: StreamDestination) -> SinkSource {
        if case .packets(let sink) = destination { return { _ in sink } }
        return { [self] stream in
            DecodingSink(
                stream, to: destination, loudspeaker, lipSync, loop: loop,
                requestKeyframe: { [self] in connection?.requestKeyframe(of: stream.id) },
                report: { [self] error in report(.problem(error)) })
        }
    }
}

/// Decodes one stream to frames or audio with a `ReceivingPipeline`, and restarts it after failures. On the loop only.
final class DecodingSink: IncomingSink {
    /// A notice from another thread.
    private enum Notice: Sendable {
        case keyframeNeeded
        case pipeline(Int, ReceivingPipeline.Notice)
        case device(MediaEvent)
    }

    /// Late notices do not keep the sink alive.
    private final class Door {
        weak var sink: DecodingSink?
    }

    private let loop: EventLoop
    private let monitor: StreamMonitor
    private let connectStarted: MonotonicTime
    private let pipeline: ReceivingPipeline
    private let stream: IncomingStream
    private let loudspeaker: RoomLoudspeaker
    private let lipSync: RoomLipSync
    private var clock: StreamClock?
    private let requestKeyframe: () -> Void
    private let report: (RoomError) -> Void
    /// Late notices say nothing about the loudspeaker.
    private var hasEnded = false

    init(
        _ stream: IncomingStream, to destination: StreamDestination, _ loudspeaker: RoomLoudspeaker,
        _ lipSync: RoomLipSync, loop: EventLoop, requestKeyframe: @escaping () -> Void,
        report: @escaping (RoomError) -> Void
    ) {
        self.loop = loop
        (self.stream, self.loudspeaker, self.lipSync) = (stream, loudspeaker, lipSync)
        connectStarted = stream.connectStarted
        self.requestKeyframe = requestKeyframe
        self.report = report
        monitor = StreamMonitor(key: StreamKey(server: stream.server, stream: stream.id))
        let door = LoopBound(Door(), loop: loop)
        pipeline = Self.pipeline(stream, destination, monitor) { notice in
            loop.execute { door.value.sink?.handle(notice) }
        }
        door.value.sink = self
    }

    private static func pipeline(
        _ stream: IncomingStream, _ destination: StreamDestination, _ monitor: StreamMonitor,
        _ tell: @escaping @Sendable (Notice) -> Void
    ) -> ReceivingPipeline {
        let isAudible = if case .sound(true) = destination { true } else { false }
        let graph = ReceivingGraph.make(stream.codec, payloadType: stream.payloadType, isAudible: isAudible)
        return ReceivingPipeline(monitor: monitor) { previous, post in
            var bindings = NodeBindings()
            if case .frames(let fanout) = destination {
                bindings.frames[ReceivingGraph.view] = { frame in
                    monitor.rendered(frame)
                    fanout.deliver(frame)
                }
            }
            bindings.events = { event in
                switch event {
                case .keyframeNeeded: tell(.keyframeNeeded)
                case .failed(let error): post(.failed(error))
                case .deviceWaiting, .deviceLost, .deviceReturned, .deviceFailedOver: tell(.device(event))
                case .ended, .firstFrame, .partFailed, .warning, .qualityChanged: break
                }
            }
            return PipelineRunner(graph, bindings: bindings, after: previous) { result in
                switch result {
                case .success(let decoding): post(.running(decoding))
                case .failure(let error): post(.failed(error))
                }
            }
        } post: { number, notice in
            tell(.pipeline(number, notice))
        }
    }

    func begin(_ stream: IncomingStream) { pipeline.start() }

    func receive(_ packet: Span<UInt8>) { pipeline.receive(packet) }

    func clockChanged(_ clock: StreamClock) {
        self.clock = clock
        monitor.clockChanged(clock)
    }

    func sample(now: MonotonicTime) {
        monitor.sample(now: now)
        if let playing = pipeline.playing, let hold = lipSync.note(playing, of: stream, clock, now: now) {
            pipeline.hold(seconds: hold)
        }
        if loudspeaker.isAway, pipeline.isAudible { loudspeaker.play(stream.id) }
    }

    var framesDecoded: Int { pipeline.framesDecoded }

    func fill(_ statistics: inout RoomStatistics.Received) {
        monitor.fill(&statistics, connectStarted: connectStarted)
        pipeline.fill(&statistics)
    }

    func end() {
        pipeline.end()
        loudspeaker.end(stream.id)
        lipSync.end(stream)
        hasEnded = true
    }

    private func handle(_ notice: Notice) {
        switch notice {
        case .keyframeNeeded: requestKeyframe()
        case .device(let event): if !hasEnded { loudspeaker.handle(event, of: stream.id) }
        case .pipeline(let number, let told):
            switch pipeline.handle(told, of: number, now: loop.now) {
            case .requestKeyframe: requestKeyframe()
            case .retry(let delay, let isNews):
                loop.schedule(after: delay) { [weak pipeline] in pipeline?.retry(after: number) }
                if isNews, case .failed(let error) = told { report(RoomError(error)) }
            case .nothing: break
            }
        }
    }
}

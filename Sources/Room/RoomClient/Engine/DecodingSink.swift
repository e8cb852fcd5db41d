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
    let room: SoundRoom
    private let lipSync = RoomLipSync()
    /// Set before the first stream.
    weak var connection: RoomConnection?

    /// - Parameter report: called on the loop, with problems that do not end the room, and events of the loudspeaker.
    init(loop: EventLoop, report: @escaping @Sendable (RoomEvent) -> Void) {
        self.loop = loop
        self.report = report
        room = SoundRoom(loudspeaker: RoomLoudspeaker { report(.loudspeaker($0)) }) { report(.problem($0)) }
    }

    /// An event of the connection, before the application hears of it.
    func note(_ event: RoomEvent) {
        switch event {
        case .streamUnpublished(_, let stream): room.forget(stream.id)
        case .participantLeft(let participant): for stream in participant.streams { room.forget(stream.id) }
        default: break
        }
    }

    /// The room has ended.
    func close() {
        for isAudible in [true, false] { SoundOutput.shared(isAudible: isAudible).close(room) }
    }

    func sinks(to destination: StreamDestination) -> SinkSource {
        switch destination {
        case .packets(let sink): return { _ in sink }
        case .sound(let isAudible):
            return { [self] stream in SlotSink(stream, in: SoundOutput.shared(isAudible: isAudible), room, lipSync) }
        case .frames(let fanout):
            return { [self] stream in
                DecodingSink(
                    stream, to: fanout, lipSync, loop: loop,
                    requestKeyframe: { [self] in connection?.requestKeyframe(of: stream.id) },
                    report: { [self] error in report(.problem(error)) })
            }
        }
    }
}

/// Decodes one video to frames with a `ReceivingPipeline`, and restarts it after failures. On the loop only.
final class DecodingSink: IncomingSink {
    /// A notice from another thread.
    private enum Notice: Sendable {
        case keyframeNeeded
        case pipeline(Int, ReceivingPipeline.Notice)
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
    private let lipSync: RoomLipSync
    private var clock: StreamClock?
    private let requestKeyframe: () -> Void
    private let report: (RoomError) -> Void

    init(
        _ stream: IncomingStream, to fanout: FrameFanout, _ lipSync: RoomLipSync, loop: EventLoop,
        requestKeyframe: @escaping () -> Void, report: @escaping (RoomError) -> Void
    ) {
        self.loop = loop
        (self.stream, self.lipSync) = (stream, lipSync)
        connectStarted = stream.connectStarted
        self.requestKeyframe = requestKeyframe
        self.report = report
        monitor = StreamMonitor(key: StreamKey(server: stream.server, stream: stream.id))
        let door = LoopBound(Door(), loop: loop)
        pipeline = Self.pipeline(stream, fanout, monitor) { notice in
            loop.execute { door.value.sink?.handle(notice) }
        }
        door.value.sink = self
    }

    private static func pipeline(
        _ stream: IncomingStream, _ fanout: FrameFanout, _ monitor: StreamMonitor,
        _ tell: @escaping @Sendable (Notice) -> Void
    ) -> ReceivingPipeline {
        let codec = VideoCodec(stream.codec) ?? .vp8
        let graph = ReceivingGraph.make(codec, payloadType: stream.payloadType)
        return ReceivingPipeline(monitor: monitor) { previous, post in
            var bindings = NodeBindings()
            bindings.frames[ReceivingGraph.view] = { frame in
                monitor.rendered(frame)
                fanout.deliver(frame)
            }
            bindings.events = { event in
                switch event {
                case .keyframeNeeded: tell(.keyframeNeeded)
                case .failed(let error): post(.failed(error))
                case .deviceWaiting, .deviceLost, .deviceReturned, .deviceFailedOver, .ended, .firstFrame, .partFailed,
                    .warning, .qualityChanged, .soundInterrupted, .soundResumed:
                    break
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
    }

    var framesDecoded: Int { pipeline.framesDecoded }

    func fill(_ statistics: inout RoomStatistics.Received) {
        monitor.fill(&statistics, connectStarted: connectStarted)
        pipeline.fill(&statistics)
    }

    func end() {
        pipeline.end()
        lipSync.end(stream)
    }

    private func handle(_ notice: Notice) {
        switch notice {
        case .keyframeNeeded: requestKeyframe()
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

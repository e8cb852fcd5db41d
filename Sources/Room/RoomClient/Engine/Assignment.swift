internal import MediaGraph
internal import MediaNodes
internal import PeerSession
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// A stream assigned to a receiver.
struct AssignedStream: Sendable {
    var id: Int
    var participant: String
    var codec: Codec
    var key: CaptureLedger.Key
    var destination: StreamDestination
}

/// A notice about a receiver's stream, sent from another thread to the loop.
struct ReceiverNotice: Sendable {
    enum Kind: Sendable {
        case keyframeNeeded
        case pipeline(Int, ReceivingPipeline.Notice)
    }

    var mid: String
    var serial: Int
    var kind: Kind
}

/// One stream in one receiver, with its sink and its counters. On the loop only.
final class Assignment {
    let stream: AssignedStream
    let payloadType: UInt8
    /// Distinguishes this assignment from earlier ones of the same receiver.
    let serial: Int
    let monitor: StreamMonitor
    /// The receiver's counters when the stream was assigned.
    let before: ReceiverStatistics?
    let sink: any IncomingSink
    /// The sink, if it is the engine's own.
    let pipeline: ReceivingPipeline?

    private static let serials = Atomic<Int>(0)

    init(
        _ stream: AssignedStream, mid: String, codec: NegotiatedCodec, before: ReceiverStatistics?,
        post: @escaping @Sendable (ReceiverNotice) -> Void
    ) {
        self.stream = stream
        self.before = before
        payloadType = codec.payloadType
        let serial = Self.serials.wrappingAdd(1, ordering: .relaxed).newValue
        self.serial = serial
        let monitor = StreamMonitor(key: stream.key)
        self.monitor = monitor
        @Sendable func tell(_ kind: ReceiverNotice.Kind) { post(ReceiverNotice(mid: mid, serial: serial, kind: kind)) }
        if case .packets(let sink) = stream.destination {
            pipeline = nil
            self.sink = sink
        } else {
            let made = Self.pipeline(stream.destination, codec, monitor, tell)
            pipeline = made
            sink = made
        }
        sink.begin(
            IncomingStream(
                id: stream.id, participant: stream.participant, codec: codec.codec, payloadType: codec.payloadType,
                requestKeyframe: { tell(.keyframeNeeded) }))
    }

    private static func pipeline(
        _ destination: StreamDestination, _ codec: NegotiatedCodec, _ monitor: StreamMonitor,
        _ tell: @escaping @Sendable (ReceiverNotice.Kind) -> Void
    ) -> ReceivingPipeline {
        let isAudible = if case .sound(true) = destination { true } else { false }
        let graph = ReceivingGraph.make(codec.codec, payloadType: codec.payloadType, isAudible: isAudible)
        return ReceivingPipeline(monitor: monitor, wantsToBeHeard: isAudible) { previous, post in
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
                case .ended, .firstFrame, .partFailed, .warning: break
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

    func receive(_ packet: Span<UInt8>) { sink.receive(packet) }

    func statistics(connectStarted: MonotonicTime) -> RoomStatistics.Received {
        var entry = RoomStatistics.Received(
            streamId: stream.id, participantId: stream.participant, isVideo: stream.codec.media == .video)
        entry.codec = stream.codec.rawValue
        monitor.fill(&entry, connectStarted: connectStarted)
        sink.fill(&entry)
        return entry
    }
}

internal import MediaGraph
internal import MediaNodes
internal import PeerSession
internal import RTP
internal import RoomProtocol
internal import Synchronization

/// One stream in one receiver: its pipeline, made for its codec, and what has been counted of it. On the loop only.
final class Assignment {
    let stream: AssignedStream
    let payloadType: UInt8
    /// Tells this assignment from earlier ones of the same receiver.
    let serial: Int
    let monitor: StreamMonitor
    let runner: PipelineRunner
    /// The receiver's counters when the stream was assigned.
    let before: ReceiverStatistics?

    private var input: RTPInput?
    /// Packets that came while the pipeline was being made, the first keyframe among them.
    private var early: [[UInt8]] = []
    private let pipeline: PipelineReference

    /// A keyframe of 1080p is some 150 packets; what comes beyond this is dropped, and the jitter buffer
    /// asks for a keyframe when it finds the hole.
    private static let earlyCapacity = 600
    private static let serials = Atomic<Int>(0)

    /// Holds the pipeline for whoever asks for its counters.
    private final class PipelineReference: Sendable {
        let pipeline = Mutex<MediaPipeline?>(nil)
    }

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
        let pipeline = PipelineReference()
        self.pipeline = pipeline
        var bindings = NodeBindings()
        if let fanout = stream.fanout {
            bindings.frames[ReceivingGraph.view] = { frame in
                monitor.rendered(frame)
                fanout.deliver(frame)
            }
        }
        bindings.events = { event in
            switch event {
            case .keyframeNeeded: post(ReceiverNotice(mid: mid, serial: serial, kind: .keyframeNeeded))
            case .failed(let error): post(ReceiverNotice(mid: mid, serial: serial, kind: .failed(error)))
            case .ended, .firstFrame: break
            }
        }
        runner = PipelineRunner(
            ReceivingGraph.make(codec.codec, payloadType: codec.payloadType, isAudible: stream.isAudible),
            bindings: bindings
        ) { result in
            switch result {
            case .success(let made):
                pipeline.pipeline.withLock { $0 = made }
                guard let input = made.rtpInput(ReceivingGraph.input) else { return }
                post(ReceiverNotice(mid: mid, serial: serial, kind: .running(input)))
            case .failure(let error): post(ReceiverNotice(mid: mid, serial: serial, kind: .failed(error)))
            }
        }
    }

    func receive(_ packet: borrowing PacketBuffer) {
        if let input {
            input.push(packet.bytes.span.extracting(0..<packet.count).bytes)
        } else if early.count < Self.earlyCapacity {
            early.append(Array(packet.bytes[..<packet.count]))
        }
    }

    /// The pipeline runs: what came early goes in first.
    func start(_ input: RTPInput) {
        for packet in early { input.push(packet.span.bytes) }
        early = []
        self.input = input
    }

    func statistics(connectStarted: MonotonicTime) -> RoomStatistics.Received {
        var entry = RoomStatistics.Received(
            streamId: stream.id, participantId: stream.participant, isVideo: stream.codec.media == .video)
        entry.codec = stream.codec.rawValue
        monitor.fill(&entry, connectStarted: connectStarted)
        let counted = pipeline.pipeline.withLock { $0 }?.statistics
        if let input = counted?.rtpInputs[ReceivingGraph.input] {
            entry.framesReceived = input.framesReceived
            entry.framesDecoded = input.framesDecoded
            entry.packetsLate = input.packetsLate
        }
        if let sound = counted?.audioRenderers[ReceivingGraph.speaker] {
            entry.audioSecondsRendered = sound.secondsRendered
            entry.audioSecondsAboveSilence = sound.secondsAboveSilence
            entry.isAudible = sound.isAudible
        }
        return entry
    }
}

import GStreamerKit
public import MediaGraph
import Synchronization

/// Packetizes encoded frames into RTP and delivers the packets of one frame together.
///
/// A node of another module that sends encoded media may have one of these for each of its inputs: `add` adds the
/// elements, `init(_:input:handOver:)` starts them.
package final class RTPOutputNode: NodeType, RunningNode {
    private struct State {
        /// The packets of the frame in progress.
        var batch = RTPBatch(captureTime: MediaTime(nanoseconds: 0), rtpTimestamp: 0, isKeyframe: false)
        var counts = MediaStatistics.RTPOutput()
    }

    private let payloader: Element
    private let isVideo: Bool
    /// Written on one streaming thread. The lock is for readers of the counts.
    private let state = Mutex(State())
    /// Whether the frame in progress is a keyframe. Only used on the streaming thread.
    private let isKeyframe = AtomicBool(true)
    private let handOver: @Sendable (RTPBatch) -> Void

    package static let kind = NodeKind(
        "rtp-output", .transport, "Passes the RTP packets of each encoded frame to the program",
        inputs: [Port("in", [.encodedVideo, .encodedAudio], encodings: ["vp8", "vp9", "h264", "opus"])],
        settings: [
            SettingContract("payload-type", .integer(0...127), default: 96, "RTP payload type"),
            SettingContract("ssrc", .integer(0...Int(UInt32.max)), "RTP SSRC (default: random)"),
            SettingContract(
                "mtu", .integer(200...9000), default: 1180, unit: "bytes",
                "Largest packet; the default leaves room for header extensions, RTX and SRTP in a datagram of 1280 "
                    + "bytes"),
        ],
        binding: .rtpOutput)

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        var properties: [String: SettingValue] = [
            "pt": .integer(request.integer("payload-type")), "mtu": .integer(request.integer("mtu")),
        ]
        if let ssrc = request.optionalInteger("ssrc") { properties["ssrc"] = .integer(ssrc) }
        try add(to: &plan, input: "in", properties, request)
        return plan
    }

    /// Adds the elements of one input.
    package static func add(
        to plan: inout NodePlan, input: String, _ given: [String: SettingValue], _ request: NodeRequest
    ) throws(MediaError) {
        var properties = given
        let factory: String
        switch request.input(input)?.encoding ?? "vp8" {
        case "vp8":
            properties["picture-id-mode"] = "15-bit"
            factory = "rtpvp8pay"
        case "vp9":
            properties["picture-id-mode"] = "15-bit"
            factory = "rtpvp9pay"
        case "h264":
            // The encoder puts SPS and PPS before each keyframe; the payloader would put them before each slice.
            properties["config-interval"] = 0
            properties["aggregate-mode"] = "zero-latency"
            factory = "rtph264pay"
        default:
            // Packets without audio are not sent (RFC 6716, section 3.4): an encoder with DTX makes them in silence.
            properties["dtx"] = true
            factory = "rtpopuspay"
        }
        try request.environment.require(factory)
        plan.add(factory, as: "\(input)-payloader", properties)
        plan.addSink(as: "\(input)-sink")
        plan.link("\(input)-payloader", "\(input)-sink")
        plan.inputs[input] = ElementPad("\(input)-payloader")
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let handOver = instance.bound(\.rtpOutputs)
        return try RTPOutputNode(instance, input: "in", handOver: handOver)
    }

    /// Delivers the packets of one input. `handOver` is called on a streaming thread. `onEnd` is called there too, when the
    /// input has ended.
    package init(
        _ instance: NodeInstance, input: String,
        handOver: @escaping @Sendable (RTPBatch) -> Void, onEnd: @escaping @Sendable () -> Void = {}
    ) throws(MediaError) {
        payloader = instance.element("\(input)-payloader")
        isVideo = payloader.factory != "rtpopuspay"
        let (reporter, node) = (instance.reporter, instance.name)
        self.handOver = { batch in
            reporter.firstFrame(node)
            handOver(batch)
        }
        if isVideo {
            payloader.sink.watchBuffers { [isKeyframe] frame in _ = isKeyframe.exchange(frame.isKeyframe) }
        }
        let end = instance.element("\(input)-sink").sink
        end.watchBuffers { [weak self] buffer in self?.take(buffer) }
        end.watchEvents { event in
            if case .endOfStream = event { onEnd() }
        }
    }

    /// Requests a keyframe from the source: an encoder, a camera or a peer.
    package func requestKeyframe() { payloader.sink.requestKeyframe() }

    /// Limits the encoder to a bitrate for 3 s, in bits of encoded media per second. 0 lets that of video encode nothing. Does
    /// nothing for media that nothing here encodes. Any thread.
    ///
    /// - Parameters:
    ///   - degradation: the property that the video keeps; nil leaves it to the encoder.
    ///   - keepsSize: whether the frames keep their size, because the video comes in several.
    package func limitRate(bitsPerSecond: Int, degradation: Degradation? = nil, keepsSize: Bool = false) {
        payloader.sink.limitRate(
            bitsPerSecond: bitsPerSecond, source: UInt64(UInt(bitPattern: ObjectIdentifier(self))),
            degradation: degradation, keepsSize: keepsSize)
    }

    /// Lets the encoder of audio prepare its packets for this loss, in percent, for 3 s, unless its settings state one or
    /// another consumer expects more. Any thread.
    package func expectLoss(percent: Int) {
        payloader.sink.expectLoss(percent: percent, source: UInt64(UInt(bitPattern: ObjectIdentifier(self))))
    }

    package func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.rtpOutputs[name] = state.withLock { $0.counts }
    }

    /// Adds a packet. The last one of a video frame has the marker bit (RFC 7741 section 4.1, RFC 9628 section 4.1, RFC 6184
    /// section 5.1).
    private func take(_ buffer: borrowing PassingBuffer) {
        let complete = state.withLock { state -> RTPBatch? in
            let start = state.batch.bytes.count
            buffer.append(to: &state.batch.bytes)
            let bytes = state.batch.bytes
            let packet = bytes.span.bytes.extracting(droppingFirst: start)
            guard let timestamp = rtpTimestamp(of: packet) else { return nil }
            let isLast = !isVideo || packet.unsafeLoad(fromByteOffset: 1, as: UInt8.self) & 0x80 != 0
            if state.batch.ends.isEmpty {
                state.batch.captureTime = buffer.time
                state.batch.rtpTimestamp = timestamp
                state.batch.isKeyframe = isKeyframe.value
                state.batch.audioLevel = isVideo ? nil : buffer.audioLevel
            }
            state.batch.ends.append(bytes.count)
            guard isLast else { return nil }
            state.counts.frames += 1
            state.counts.packets += state.batch.ends.count
            state.counts.bytes += bytes.count
            defer {
                state.batch.bytes = []
                state.batch.ends = []
            }
            return state.batch
        }
        if let complete { handOver(complete) }
    }
}

/// The timestamp of an RTP packet (RFC 3550 section 5.1). Nil for a packet without a whole header.
func rtpTimestamp(of packet: RawSpan) -> UInt32? {
    guard packet.byteCount >= 12 else { return nil }
    return UInt32(bigEndian: packet.unsafeLoadUnaligned(fromByteOffset: 4, as: UInt32.self))
}

/// Passes the RTP packets of each encoded frame to a function.
public struct RTPOutput: MediaNode {
    public var handle: NodeHandle

    /// An output that passes packets to a function of the program.
    ///
    /// - Parameters:
    ///   - ssrc: nil for a random one.
    ///   - mtu: the largest packet, in bytes.
    ///   - send: called once for each encoded frame, one call after the other, on a GStreamer thread. Return soon and never
    ///     block. To stop the pipeline, start a Task.
    public init(
        payloadType: UInt8? = nil, ssrc: UInt32? = nil, mtu: Int? = nil, _ send: @escaping @Sendable (RTPBatch) -> Void
    ) {
        handle = NodeHandle(
            RTPOutputNode.kind,
            ["payload-type": payloadType.map { Int($0) }, "ssrc": ssrc.map { Int($0) }, "mtu": mtu],
            code: .rtpOutput(send))
    }

    /// The packets that were passed on so far.
    ///
    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.RTPOutput {
        get throws(MediaError) { try figures(\.rtpOutputs) ?? MediaStatistics.RTPOutput() }
    }
}

import GStreamerKit
import MediaGraph
import Synchronization

/// Cuts encoded frames into RTP packets and hands those of one frame over together.
final class RTPOutputNode: NodeType, RunningNode {
    private struct State {
        var batch = RTPBatch(captureTime: MediaTime(nanoseconds: 0), rtpTimestamp: 0, isKeyframe: false)
        var counts = MediaStatistics.RTPOutput()
    }

    let name: String
    /// Written on one streaming thread; the lock is for whoever reads the counts.
    private let state = Mutex(State())
    private let handOver: @Sendable (RTPBatch) -> Void
    private let reporter: Reporter
    private let isVideo: Bool
    /// Whether the frame that is being cut is a keyframe; written and read on the streaming thread.
    private let isKeyframe = Flag(true)

    private init(
        _ name: String, isVideo: Bool, reporter: Reporter, handOver: @escaping @Sendable (RTPBatch) -> Void
    ) {
        self.name = name
        self.isVideo = isVideo
        self.reporter = reporter
        self.handOver = handOver
    }

    static let kind = NodeKind.rtpOutput

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let codec = request.input("in")?.encoding ?? "vp8"
        var properties: [String: SettingValue] = [
            "pt": .integer(request.integer("payload-type") ?? 96), "mtu": .integer(request.integer("mtu") ?? 1180),
        ]
        if let ssrc = request.integer("ssrc") { properties["ssrc"] = .integer(ssrc) }
        let factory: String
        switch codec {
        case "vp8":
            properties["picture-id-mode"] = "15-bit"
            factory = "rtpvp8pay"
        case "h264":
            // The encoder puts SPS and PPS before each keyframe; the payloader would put them before each slice.
            properties["config-interval"] = 0
            properties["aggregate-mode"] = "zero-latency"
            factory = "rtph264pay"
        default:
            factory = "rtpopuspay"
        }
        try request.environment.require(factory)
        var plan = NodePlan(request.node)
        plan.add(factory, as: "payloader", properties)
        plan.addSink()
        plan.link("payloader", "sink")
        plan.inputs["in"] = ElementPad("payloader")
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        guard let handOver = instance.context.bindings.rtpOutputs[instance.name] else {
            preconditionFailure("a graph that was validated has an unbound \(instance.name)")
        }
        let payloader = instance.element("payloader")
        let isVideo = payloader.factory != "rtpopuspay"
        let running = RTPOutputNode(
            instance.name, isVideo: isVideo, reporter: instance.reporter, handOver: handOver)
        if isVideo {
            payloader.sink.onBuffer { frame in
                _ = running.isKeyframe.exchange(frame.isKeyframe)
                return .pass
            }
        }
        instance.element("sink").sink.onBuffer { buffer in
            running.take(buffer)
            return .pass
        }
        return running
    }

    /// A packet; the last of a frame of video carries the marker bit (RFC 7741 section 4.1, RFC 6184 section 5.1).
    private func take(_ buffer: borrowing PassingBuffer) {
        let complete = state.withLock { state -> RTPBatch? in
            let start = state.batch.bytes.count
            buffer.append(to: &state.batch.bytes)
            let bytes = state.batch.bytes
            guard bytes.count >= start + 12 else { return nil }
            if state.batch.ends.isEmpty {
                state.batch.captureTime = buffer.time
                state.batch.rtpTimestamp = rtpTimestamp(in: bytes, at: start)
                state.batch.isKeyframe = isKeyframe.value
            }
            state.batch.ends.append(bytes.count)
            let isLast = !isVideo || bytes[start + 1] & 0x80 != 0
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
        guard let complete else { return }
        reporter.firstFrame(name)
        handOver(complete)
    }

    func report(into statistics: inout MediaStatistics) {
        statistics.rtpOutputs[name] = state.withLock { $0.counts }
    }
}

/// The timestamp of an RTP header (RFC 3550 section 5.1) that starts at `start`.
func rtpTimestamp(in bytes: [UInt8], at start: Int) -> UInt32 {
    UInt32(bytes[start + 4]) << 24 | UInt32(bytes[start + 5]) << 16 | UInt32(bytes[start + 6]) << 8
        | UInt32(bytes[start + 7])
}

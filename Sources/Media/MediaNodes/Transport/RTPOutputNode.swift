import GStreamerKit
import MediaGraph
import Synchronization

/// Cuts encoded frames into RTP packets and hands those of one frame over together.
final class RTPOutputNode: RunningNode {
    private struct State {
        var batch = RTPBatch(captureTime: MediaTime(nanoseconds: 0), rtpTimestamp: 0, isKeyframe: false)
        var counts = MediaStatistics.RTPOutput()
    }

    let name: String
    /// Written on one streaming thread; the lock is for whoever reads the counts.
    private let state = Mutex(State())
    private let handOver: @Sendable (RTPBatch) -> Void
    private let reporter: Reporter
    private let encoder: VideoEncoderNode?

    private init(
        _ name: String, encoder: VideoEncoderNode?, reporter: Reporter,
        handOver: @escaping @Sendable (RTPBatch) -> Void
    ) {
        self.name = name
        self.encoder = encoder
        self.reporter = reporter
        self.handOver = handOver
    }

    static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        guard let handOver = assembly.bindings.rtpOutputs[node.name] else {
            preconditionFailure("a graph that was validated has an unbound \(node.name)")
        }
        let above = assembly.nearest(["vp8-encoder", "h264-encoder", "opus-encoder"], above: node.name)
        let encoder = above.flatMap { assembly.runningNode(VideoEncoderNode.self, named: $0.name) }
        var properties: [String: PropertyValue] = [
            "pt": .integer(node.integer("payload-type") ?? 96), "mtu": .integer(node.integer("mtu") ?? 1180),
        ]
        if let ssrc = node.integer("ssrc") { properties["ssrc"] = .integer(ssrc) }
        let payloader: Element
        switch encoder?.codec {
        case .vp8:
            properties["picture-id-mode"] = "15-bit"
            payloader = try assembly.element("rtpvp8pay", of: node, properties)
        case .h264:
            // The encoder puts SPS and PPS before each keyframe; the payloader would put them before each slice.
            properties["config-interval"] = 0
            properties["aggregate-mode"] = "zero-latency"
            payloader = try assembly.element("rtph264pay", of: node, properties)
        case nil:
            payloader = try assembly.element("rtpopuspay", of: node, properties)
        }
        let sink = try assembly.sink(of: node)
        try payloader.link(sink)
        let running = RTPOutputNode(node.name, encoder: encoder, reporter: assembly.reporter, handOver: handOver)
        sink.sink.onBuffer { buffer in
            running.take(buffer)
            return .pass
        }
        assembly.accept("in", of: node, into: payloader)
        assembly.register(running)
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
                state.batch.isKeyframe = encoder?.lastIsKeyframe ?? true
            }
            state.batch.ends.append(bytes.count)
            let isLast = encoder == nil || bytes[start + 1] & 0x80 != 0
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

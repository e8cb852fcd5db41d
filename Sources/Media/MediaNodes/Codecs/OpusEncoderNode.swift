import GStreamerKit
import MediaGraph

/// Opus, 20 ms a packet. Its in-band error correction repairs single losses without waiting for a repeat.
final class OpusEncoderNode: RunningNode {
    let name: String
    private let element: Element

    private init(_ name: String, _ element: Element) {
        self.name = name
        self.element = element
    }

    static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        // The same thread that captures should not encode: a queue of 200 ms, losing the oldest.
        let queue = try assembly.element(
            "queue", of: node,
            [
                "leaky": "downstream", "max-size-buffers": 0, "max-size-bytes": 0, "max-size-time": 200_000_000,
                "silent": true,
            ])
        let encoder = try assembly.element(
            "opusenc", of: node,
            [
                "bitrate": .integer(node.integer("bitrate") ?? 64_000), "inband-fec": true, "frame-size": "20",
                "packet-loss-percentage": .integer(node.integer("expected-loss") ?? 10), "audio-type": "voice",
                "bandwidth": "fullband", "bitrate-type": "cbr", "complexity": 5,
            ])
        try queue.link(encoder)
        assembly.accept("in", of: node, into: queue)
        assembly.provide("out", of: node, from: encoder)
        assembly.register(OpusEncoderNode(node.name, encoder))
    }

    func setBitrate(_ bitrate: Bitrate) {
        element.set("bitrate", .integer(min(max(bitrate.bitsPerSecond, 6_000), 510_000)))
    }
}

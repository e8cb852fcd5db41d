import GStreamerKit
import MediaGraph

/// Opus, 20 ms a packet. Its in-band error correction repairs single losses without waiting for a repeat.
final class OpusEncoderNode: NodeType, RunningNode {
    static let kind = NodeKind.opusEncoder
    /// Seconds of sound in a packet.
    private static let packet = 0.02
    /// A packet waits for the buffer that brings its end. That takes as long as the packet is longer than what came at
    /// once with its beginning: half of it, where buffers of 10 ms come from a microphone as where the longer ones of
    /// files lie anyhow to the packets. What the codec looks ahead (6.5 ms, RFC 6716, 2.1.1) is no part of it: timestamps
    /// go by what is encoded, and a decoder gives it that much later.
    private static let latency = packet / 2

    let name: String
    private let element: Element

    private init(_ name: String, _ element: Element) {
        self.name = name
        self.element = element
    }

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("opusenc")
        let bitrate = request.integer("bitrate") ?? 64_000
        var plan = NodePlan(request.node)
        // The same thread that captures should not encode.
        plan.addQueue(as: "queue", .rawSound, holding: nil)
        plan.add(
            "opusenc", as: "encoder",
            [
                "bitrate": .integer(bitrate), "inband-fec": true, "frame-size": "20",
                "packet-loss-percentage": .integer(request.integer("expected-loss") ?? 10), "audio-type": "voice",
                "bandwidth": "fullband", "bitrate-type": "cbr", "complexity": 5,
            ])
        plan.link("queue", "encoder")
        plan.inputs["in"] = ElementPad("queue")
        plan.outputs["out"] = ElementPad("encoder")
        plan.formats["out"] = MediaFormat(
            .encodedAudio, "opus", sampleRate: 48_000, channels: 2, bitsPerSecond: bitrate)
        plan.latency = latency
        plan.allowances["out"] = packet
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        OpusEncoderNode(instance.name, instance.element("encoder"))
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard setting == "bitrate", let bitrate = value.integer else { return false }
        try element.set("bitrate", .integer(bitrate))
        return true
    }
}

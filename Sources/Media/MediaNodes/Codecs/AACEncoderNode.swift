import GStreamerKit
public import MediaGraph

/// AAC, for containers without Opus. A packet has 1024 samples.
enum AACEncoderNode: NodeType {
    static let kind = NodeKind(
        "aac-encoder", .codec, "AAC, for containers without Opus, such as HLS",
        inputs: .rawAudioIn, outputs: [Port("out", [.encodedAudio], encodings: ["aac"])],
        settings: [
            SettingContract("bitrate", .integer(16_000...320_000), default: 128_000, unit: "bit/s", "Bitrate")
        ])

    /// Best first, with the samples that each inserts before the first one without correcting its timestamps.
    private static let elements: [(factory: String, lead: Int)] = [
        ("fdkaacenc", 2048), ("avenc_aac", 1024), ("voaacenc", 1600),
    ]
    static var factories: [String] { elements.map(\.factory) }
    private static let sampleRate = 48_000

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let choice = try request.environment.firstUsable(of: factories)
        let bitrate = request.integer("bitrate")
        var plan = NodePlan(request.node)
        plan.passedOver = choice.passedOver
        plan.addQueue(as: "queue", .rawSound, holding: nil)
        // Sets the channels' positions, which the encoders require.
        plan.add("audioconvert", as: "convert")
        plan.add(choice.factory, as: "encoder", ["bitrate": .integer(bitrate)])
        plan.chain(
            to: MediaFormat(.encodedAudio, "aac", sampleRate: sampleRate, channels: 2, bitsPerSecond: bitrate))
        // A packet, the inserted samples, and the wait for the last buffer of a packet.
        let delay = Double(1024 + lead(of: choice.factory)) / Double(sampleRate)
        plan.allowances["out"] = delay
        plan.latency = 0.01 + delay
        return plan
    }

    /// Subtracts the encoder's inserted samples from its timestamps, so that audio stays in step.
    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let encoder = instance.element("encoder")
        encoder.source.offset = -lead(of: encoder.factory) * 1_000_000_000 / sampleRate
        return nil
    }

    private static func lead(of factory: String) -> Int {
        elements.first { $0.factory == factory }?.lead ?? 0
    }
}

/// An AAC encoder, for containers without Opus.
public struct AACEncoder: MediaNode {
    public var handle: NodeHandle

    /// An encoder with a constant bitrate. Nil means the default of the kind.
    public init(bitrate: Bitrate? = nil) {
        handle = NodeHandle(AACEncoderNode.kind, ["bitrate": bitrate?.bitsPerSecond])
    }
}

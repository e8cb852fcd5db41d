public import MediaGraph

/// Opus in packets of 20 ms. Its in-band error correction repairs single losses without retransmission.
enum OpusEncoderNode: NodeType {
    static let kind = NodeKind(
        "opus-encoder", .codec, "Opus in packets of 20 ms, with in-band forward error correction",
        inputs: .rawAudioIn, outputs: [Port("out", [.encodedAudio], encodings: ["opus"])],
        settings: [
            SettingContract(
                "bitrate", .integer(6_000...510_000), default: 64_000, isChangeable: true, unit: "bit/s", "Bitrate"),
            SettingContract(
                "expected-loss", .integer(0...100), default: 10, unit: "%", "Expected loss, for the error correction"),
        ])
    /// Seconds of audio in a packet.
    private static let packet = 0.02
    /// A packet waits for the buffer with its end. That takes the packet's length minus the audio that arrived with its
    /// beginning: half of it, for buffers of 10 ms from a microphone, and on average also for the longer ones of files.
    /// The codec's look-ahead (6.5 ms, RFC 6716, section 2.1.1) does not count: timestamps follow the encoded audio,
    /// and a decoder delivers it that much later.
    private static let latency = packet / 2

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("opusenc")
        let bitrate = request.integer("bitrate")
        var plan = NodePlan(request.node)
        // The capturing thread should not encode.
        plan.addQueue(as: "queue", .rawSound, holding: nil)
        plan.add(
            "opusenc", as: "encoder",
            [
                "bitrate": .integer(bitrate), "inband-fec": true, "frame-size": "20",
                "packet-loss-percentage": .integer(request.integer("expected-loss")), "audio-type": "voice",
                "bandwidth": "fullband", "bitrate-type": "cbr", "complexity": 5,
            ])
        plan.chain(to: MediaFormat(.encodedAudio, "opus", sampleRate: 48_000, channels: 2, bitsPerSecond: bitrate))
        plan.latency = latency
        plan.allowances["out"] = packet
        return plan
    }
}

/// An Opus encoder.
public struct OpusEncoder: MediaNode {
    public var handle: NodeHandle

    /// - Parameter expectedLossPercent: the expected packet loss, for the error correction.
    public init(bitrate: Bitrate? = nil, expectedLossPercent: Int? = nil) {
        handle = NodeHandle(
            OpusEncoderNode.kind, ["bitrate": bitrate?.bitsPerSecond, "expected-loss": expectedLossPercent])
    }

    /// Changes the bitrate.
    ///
    /// - Throws: `graph.invalid` for a bitrate out of range; `node.not-running`.
    public func setBitrate(_ bitrate: Bitrate) async throws(MediaError) {
        try await change("bitrate", to: bitrate.bitsPerSecond)
    }
}

extension Node {
    /// An Opus encoder. `expectedLossPercent` is the expected packet loss, for the error correction.
    package static func opusEncoder(
        _ name: String = "opus-encoder", bitrate: Bitrate? = nil, expectedLossPercent: Int? = nil
    ) -> Node {
        Node(
            OpusEncoderNode.kind, name,
            ["bitrate": bitrate?.bitsPerSecond, "expected-loss": expectedLossPercent])
    }
}

/// Nodes through which RTP leaves and enters a graph.
extension NodeKind {
    static let transport: [NodeKind] = [rtpOutput, rtpInput]

    public static let rtpOutput = NodeKind(
        "rtp-output", .transport, "Passes the RTP packets of each encoded frame to the program",
        inputs: [Port("in", [.encodedVideo, .encodedAudio], encodings: ["vp8", "h264", "opus"])],
        settings: [
            SettingContract("payload-type", .integer(0...127), default: 96, "RTP payload type"),
            SettingContract("ssrc", .integer(0...Int(UInt32.max)), "RTP SSRC (default: random)"),
            SettingContract(
                "mtu", .integer(200...9000), default: 1180, unit: "bytes",
                "Largest packet; the default leaves room for header extensions, RTX and SRTP in a datagram of 1280 "
                    + "bytes"),
        ],
        binding: .rtpOutput)

    public static let rtpInput = NodeKind(
        "rtp-input", .transport, "Receives RTP packets from the program, in any order, and assembles frames",
        outputs: [Port("out", [.encodedVideo, .encodedAudio], encodings: ["vp8", "h264", "opus"])],
        settings: [
            SettingContract("codec", .choice(["vp8", "h264", "opus"]), isRequired: true, "Codec of the packets"),
            SettingContract("payload-type", .integer(0...127), default: 96, "RTP payload type"),
            SettingContract(
                "latency", .integer(0...5000), default: 200, unit: "ms",
                "Longest wait for the repair of a lost packet"),
            SettingContract(
                "capacity", .integer(16...65_536), default: 2048, unit: "packets",
                "Capacity of the packet queue; further packets are dropped and counted"),
        ])
}

extension Node {
    /// Hands RTP packets to the function that is bound under the node's name.
    public static func rtpOutput(
        _ name: String, payloadType: UInt8 = 96, ssrc: UInt32? = nil, mtu: Int? = nil
    ) -> Node {
        var settings: [String: SettingValue] = ["payload-type": .integer(Int(payloadType))]
        if let ssrc { settings["ssrc"] = .integer(Int(ssrc)) }
        if let mtu { settings["mtu"] = .integer(mtu) }
        return Node("rtp-output", name: name, given: settings)
    }

    /// Takes RTP packets of a video stream; `latency` is the longest wait for a repair, in milliseconds.
    public static func rtpInput(
        _ name: String, codec: VideoCodec, payloadType: UInt8 = 96, latency: Int = 200
    ) -> Node {
        rtpInput(name, codecName: codec.rawValue, payloadType: payloadType, latency: latency)
    }

    /// Takes RTP packets of a stream of sound; `latency` is the longest wait for a late packet, in milliseconds.
    public static func rtpInput(
        _ name: String, codec: AudioCodec, payloadType: UInt8 = 111, latency: Int = 60
    ) -> Node {
        rtpInput(name, codecName: codec.rawValue, payloadType: payloadType, latency: latency)
    }

    private static func rtpInput(_ name: String, codecName: String, payloadType: UInt8, latency: Int) -> Node {
        Node(
            "rtp-input", name: name,
            given: [
                "codec": .text(codecName), "payload-type": .integer(Int(payloadType)), "latency": .integer(latency),
            ])
    }
}

/// What a network camera (an RTSP server) says that it would send.
public struct NetworkCamera: Sendable, Codable, Hashable {
    /// In the order of the description; what is neither picture nor sound is left out.
    public let streams: [NetworkCameraStream]

    public init(streams: [NetworkCameraStream]) {
        self.streams = streams
    }

    public var video: NetworkCameraStream? { streams.first { $0.isVideo } }
    public var audio: NetworkCameraStream? { streams.first { !$0.isVideo } }
}

/// One stream of a network camera.
public struct NetworkCameraStream: Sendable, Codable, Hashable {
    public let isVideo: Bool
    /// The name of the payload format as it is registered, in capitals: `H264`, `MPEG4-GENERIC`.
    public let payloadFormat: String
    /// Samples per second of sound; 90000 for pictures.
    public let clockRate: Int?
    /// Of sound.
    public let channels: Int?
    /// In pixels, where the camera tells.
    public let width: Int?
    public let height: Int?
    public let framesPerSecond: Double?
    /// The parameters of the payload format, such as `profile-level-id`.
    public let parameters: [String: String]

    public init(
        isVideo: Bool, payloadFormat: String, clockRate: Int? = nil, channels: Int? = nil, width: Int? = nil,
        height: Int? = nil, framesPerSecond: Double? = nil, parameters: [String: String] = [:]
    ) {
        self.isVideo = isVideo
        self.payloadFormat = payloadFormat
        self.clockRate = clockRate
        self.channels = channels
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
        self.parameters = parameters
    }
}

extension NetworkCamera {
    /// Reads a session description (RFC 8866) as cameras write them: what is not understood is passed over.
    public init(sessionDescription text: String) {
        var sections: [[Substring]] = []
        for line in text.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("m=") {
                sections.append([line])
            } else if !sections.isEmpty {
                sections[sections.count - 1].append(line)
            }
        }
        streams = sections.compactMap(NetworkCameraStream.init(section:))
    }
}

extension NetworkCameraStream {
    /// Payload types that need no rtpmap (RFC 3551, section 6), as far as cameras use them.
    private static let fixed: [Int: (name: String, rate: Int, channels: Int?)] = [
        0: ("PCMU", 8000, 1), 8: ("PCMA", 8000, 1), 9: ("G722", 8000, 1), 14: ("MPA", 90_000, nil),
        26: ("JPEG", 90_000, nil), 32: ("MPV", 90_000, nil), 33: ("MP2T", 90_000, nil),
    ]

    fileprivate init?(section: [Substring]) {
        // m=video 0 RTP/AVP 96
        let head = section[0].dropFirst(2).split(separator: " ")
        guard head.count >= 4, head[0] == "video" || head[0] == "audio", head[2].hasPrefix("RTP/"),
            let type = Int(head[3])
        else { return nil }
        isVideo = head[0] == "video"

        func attribute(_ name: String) -> Substring? {
            section.first { $0.hasPrefix("a=\(name):") }?.dropFirst(name.count + 3)
        }
        // a=rtpmap:96 H264/90000
        let map = attribute("rtpmap").flatMap { line -> [Substring]? in
            let parts = line.split(separator: " ", maxSplits: 1)
            return parts.count == 2 && Int(parts[0]) == type ? parts[1].split(separator: "/") : nil
        }
        if let map, let name = map.first {
            payloadFormat = name.uppercased()
            clockRate = map.count > 1 ? Int(map[1]) : nil
            channels = isVideo ? nil : map.count > 2 ? Int(map[2]) : 1
        } else if let known = Self.fixed[type] {
            (payloadFormat, clockRate, channels) = (known.name, known.rate, known.channels)
        } else {
            return nil
        }

        // a=x-dimensions:1920,1080 or a=framesize:96 1920-1080 (3GPP TS 26.234)
        let sizes = (attribute("x-dimensions") ?? attribute("framesize").map { $0.split(separator: " ").last ?? "" })?
            .split { $0 == "," || $0 == "-" }.compactMap { Int($0) }
        let isSize = sizes.map { $0.count == 2 && $0.allSatisfy { (1...16_384).contains($0) } } ?? false
        width = isSize ? sizes?[0] : nil
        height = isSize ? sizes?[1] : nil
        let rate = (attribute("framerate") ?? attribute("a-framerate")).flatMap { Double($0) }
        framesPerSecond = rate.flatMap { $0 > 0 && $0 <= 240 ? $0 : nil }

        // a=fmtp:96 packetization-mode=1;profile-level-id=42C00D
        var parameters: [String: String] = [:]
        for parameter in attribute("fmtp")?.split(separator: " ", maxSplits: 1).last?.split(separator: ";") ?? [] {
            let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2 else { continue }
            let name = pair[0].drop { $0 == " " }
            parameters[name.lowercased()] = String(pair[1])
        }
        self.parameters = parameters
    }
}

package import RTP

/// The codecs that rooms carry, and their payload types in our own descriptions.
package enum Codec: String, Sendable, CaseIterable {
    case vp8 = "VP8"
    case h264 = "H264"
    case opus = "opus"

    package var media: StreamMedia { self == .opus ? .audio : .video }
    package var clockRate: UInt32 { self == .opus ? 48000 : 90000 }

    package var payloadType: UInt8 {
        switch self {
        case .vp8: 96
        case .h264: 98
        case .opus: 111
        }
    }

    /// The payload type of its RTX (RFC 4588). Audio is repaired by Opus's in-band FEC instead.
    package var retransmissionPayloadType: UInt8? { self == .opus ? nil : payloadType + 1 }

    /// The payload format that forwarding parses.
    package var payload: PayloadDescriptor.Codec {
        switch self {
        case .vp8: .vp8
        case .h264: .h264
        case .opus: .independent
        }
    }

    package static func of(_ media: StreamMedia) -> [Codec] { allCases.filter { $0.media == media } }

    package init?(payloadType: UInt8) {
        guard let codec = Self.allCases.first(where: { $0.payloadType == payloadType }) else { return nil }
        self = codec
    }

    /// The highest level of H.264 that rooms carry: the decoders of browsers in software end there. As in `level_idc`
    /// (ITU-T H.264, A.3.1).
    package static let highestLevel: UInt8 = 52

    /// The codec of a format in a peer's description, if we carry it. H.264 must use fragmentation (packetization mode
    /// 1, RFC 6184, section 6.3) and the baseline profile, which every browser offers. A room forwards to all subscribers
    /// without decoding, so it accepts formats that all of them decode. The level does not matter here: a receiver may
    /// decode higher ones than rooms carry.
    package init?(_ format: PayloadFormat) {
        guard let codec = Self.allCases.first(where: { $0.rawValue.lowercased() == format.encoding.lowercased() })
        else { return nil }
        if codec == .h264 {
            let profile = format.parameter("profile-level-id") ?? "42000a"
            guard format.parameter("packetization-mode") == "1", profile.hasPrefix("42"), Self.level(profile) != nil
            else { return nil }
        }
        self = codec
    }

    /// The `level_idc` of a `profile-level-id` (RFC 6184, section 8.1).
    fileprivate static func level(_ profile: String) -> UInt8? { UInt8(profile.suffix(2), radix: 16) }

    /// The format in our descriptions, with our payload type. That of H.264 has the highest level that rooms carry, as the
    /// level of a stream may change, and neither browsers nor our server decide by it (RFC 6184, section 8.2.2).
    package var format: PayloadFormat {
        switch self {
        case .vp8: PayloadFormat(payloadType: payloadType, encoding: rawValue, clockRate: 90000, feedback: repair)
        case .h264:
            PayloadFormat(
                payloadType: payloadType, encoding: rawValue, clockRate: 90000,
                parameters: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e0"
                    + String(Int(Self.highestLevel), radix: 16),
                feedback: repair)
        case .opus:
            PayloadFormat(
                payloadType: payloadType, encoding: rawValue, clockRate: 48000, channels: 2,
                parameters: "minptime=10;stereo=1;sprop-stereo=1;useinbandfec=1")
        }
    }

    /// The formats of an m-line with these codecs, each followed by its RTX.
    package static func formats(_ codecs: [Codec]) -> [PayloadFormat] {
        codecs.flatMap { codec in
            [codec.format]
                + (codec.retransmissionPayloadType.map { [.retransmission(of: codec.payloadType, as: $0)] } ?? [])
        }
    }

    private var repair: [String] { ["nack", "nack pli", "ccm fir"] }
}

/// A codec with its payload type in one description.
package struct NegotiatedCodec: Sendable, Equatable {
    package var codec: Codec
    package var payloadType: UInt8
    package var retransmissionPayloadType: UInt8?
    /// The `fmtp` value of the description. An answer for H.264 repeats the offered profile.
    package var parameters: String

    package init(codec: Codec, payloadType: UInt8, retransmissionPayloadType: UInt8?, parameters: String) {
        self.codec = codec
        self.payloadType = payloadType
        self.retransmissionPayloadType = retransmissionPayloadType
        self.parameters = parameters
    }

    /// Whether streams of this codec may be above the level that rooms carry.
    package var exceedsLevel: Bool {
        let format = PayloadFormat(
            payloadType: payloadType, encoding: codec.rawValue, clockRate: codec.clockRate, parameters: parameters)
        guard codec == .h264, let profile = format.parameter("profile-level-id") else { return false }
        return Codec.level(profile).map { $0 > Codec.highestLevel } ?? true
    }

    /// The codecs of a media description that we carry, in its order.
    package static func all(in media: MediaDescription) -> [NegotiatedCodec] {
        media.formats.compactMap { format in
            guard let codec = Codec(format), codec.media.rawValue == media.kind.rawValue else { return nil }
            return NegotiatedCodec(
                codec: codec, payloadType: format.payloadType,
                retransmissionPayloadType: media.retransmissionPayloadType(for: format.payloadType),
                parameters: format.parameters)
        }
    }
}

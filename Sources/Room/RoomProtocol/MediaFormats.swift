package import RTP

/// The codecs that rooms carry, and their payload types in our own descriptions.
package enum Codec: String, Sendable, CaseIterable {
    case vp8 = "VP8"
    case h264 = "H264"
    case vp9 = "VP9"
    case opus = "opus"

    package var media: StreamMedia { self == .opus ? .audio : .video }
    package var clockRate: UInt32 { self == .opus ? 48000 : 90000 }

    package var payloadType: UInt8 {
        switch self {
        case .vp8: 96
        case .h264: 98
        case .vp9: 100
        case .opus: 111
        }
    }

    /// The payload type of RED with its packets (RFC 2198). Chromium's, for Opus.
    package var redundancyPayloadType: UInt8? { self == .opus ? 63 : nil }

    /// The payload type of its RTX (RFC 4588). Copies in later packets repair audio instead.
    package var retransmissionPayloadType: UInt8? { self == .opus ? nil : payloadType + 1 }

    /// The payload format that forwarding parses.
    package var payload: PayloadDescriptor.Codec {
        switch self {
        case .vp8: .vp8
        case .h264: .h264
        case .vp9: .vp9
        case .opus: .independent
        }
    }

    package static func of(_ media: StreamMedia) -> [Codec] { allCases.filter { $0.media == media } }

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
        // The profile of 8 bits and 4:2:0, which every decoder of VP9 has (RFC 9628, section 6).
        if codec == .vp9, format.parameter("profile-id") ?? "0" != "0" { return nil }
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
        case .vp9:
            PayloadFormat(
                payloadType: payloadType, encoding: rawValue, clockRate: 90000, parameters: "profile-id=0",
                feedback: repair)
        case .opus:
            PayloadFormat(
                payloadType: payloadType, encoding: rawValue, clockRate: 48000, channels: 2,
                parameters: "minptime=10;stereo=1;sprop-stereo=1;useinbandfec=1")
        }
    }

    /// The formats of an m-line with these codecs, each followed by its RTX or RED.
    package static func formats(_ codecs: [Codec]) -> [PayloadFormat] {
        codecs.flatMap { codec in
            [codec.format]
                + (codec.retransmissionPayloadType.map { [.retransmission(of: codec.payloadType, as: $0)] } ?? [])
                + (codec.redundancyPayloadType.map { [codec.redundancy(of: codec.payloadType, as: $0)] } ?? [])
        }
    }

    /// The format of RED with packets of a payload type. Its parameters are the types of copies and own packets (RFC 2198,
    /// section 5).
    func redundancy(of payloadType: UInt8, as own: UInt8) -> PayloadFormat {
        PayloadFormat(
            payloadType: own, encoding: PayloadFormat.redundancy, clockRate: clockRate, channels: format.channels,
            parameters: "\(payloadType)/\(payloadType)")
    }

    private var repair: [String] { ["nack", "nack pli", "ccm fir"] }
}

/// A codec with its payload type in one description.
package struct NegotiatedCodec: Sendable, Equatable {
    package var codec: Codec
    package var payloadType: UInt8
    package var retransmissionPayloadType: UInt8?
    /// Of RED with its packets alone.
    package var redundancyPayloadType: UInt8?
    /// The `fmtp` value of the description. An answer for H.264 repeats the offered profile.
    package var parameters: String

    package init(
        codec: Codec, payloadType: UInt8, retransmissionPayloadType: UInt8?, redundancyPayloadType: UInt8? = nil,
        parameters: String
    ) {
        self.redundancyPayloadType = redundancyPayloadType
        self.codec = codec
        self.payloadType = payloadType
        self.retransmissionPayloadType = retransmissionPayloadType
        self.parameters = parameters
    }

    /// The parameter of Opus by which a receiver wishes that silence is not sent (DTX; RFC 7587, section 6.1).
    static let dtxParameter = "usedtx"

    /// Whether an offer of Opus has that parameter. An answer that repeats it lets a browser leave silence out.
    var requestsDTX: Bool {
        codec == .opus
            && PayloadFormat(
                payloadType: payloadType, encoding: codec.rawValue, clockRate: codec.clockRate, parameters: parameters
            ).parameter(Self.dtxParameter) == "1"
    }

    /// Whether streams of this codec may be above the level that rooms carry.
    package var exceedsLevel: Bool {
        let format = PayloadFormat(
            payloadType: payloadType, encoding: codec.rawValue, clockRate: codec.clockRate, parameters: parameters)
        guard codec == .h264, let profile = format.parameter("profile-level-id") else { return false }
        return Codec.level(profile).map { $0 > Codec.highestLevel } ?? true
    }

    /// The types of RED by that of the codec, for the configuration of a stream.
    package var redundancyPayloadTypes: [UInt8: UInt8] { redundancyPayloadType.map { [payloadType: $0] } ?? [:] }

    /// The codecs of a media description that we carry, in its order.
    package static func all(in media: MediaDescription) -> [NegotiatedCodec] {
        media.formats.compactMap { format in
            guard let codec = Codec(format), codec.media.rawValue == media.kind.rawValue else { return nil }
            return NegotiatedCodec(
                codec: codec, payloadType: format.payloadType,
                retransmissionPayloadType: media.retransmissionPayloadType(for: format.payloadType),
                redundancyPayloadType: codec.redundancyPayloadType == nil
                    ? nil : media.formats.first { $0.carriesCopies(of: format) }?.payloadType,
                parameters: format.parameters)
        }
    }
}

extension PayloadFormat {
    /// The encoding name of RED (RFC 2198, section 5).
    static let redundancy = "red"

    /// Whether this is RED whose packets have those of a format, and copies of them, and nothing else.
    func carriesCopies(of format: PayloadFormat) -> Bool {
        guard encoding.lowercased() == Self.redundancy, clockRate == format.clockRate, channels == format.channels,
            payloadType < 64 || payloadType > 95
        else { return false }
        let types = parameters.split(separator: "/", omittingEmptySubsequences: false)
        return types.count >= 2 && types.allSatisfy { UInt8($0) == format.payloadType }
    }
}

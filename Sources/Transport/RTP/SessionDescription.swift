/// A session description of WebRTC (RFC 8866, JSEP's subset of RFC 8829): one bundled transport, one media description
/// for each stream.
///
/// Parsing keeps the listed properties and drops other attributes. It refuses more than `maximumLength` bytes,
/// `maximumMedia` media descriptions or `maximumCandidates` candidates, in time linear in the length.
public struct SessionDescription: Sendable, Equatable {
    /// About 2 KiB for each media description.
    public static let maximumLength = 128 * 1024
    public static let maximumMedia = 64
    /// Each media description may repeat those of the bundle.
    public static let maximumCandidates = 400

    public var sessionID: UInt64
    public var version: UInt64
    /// The mids of the BUNDLE group (RFC 9143). If nil, `serialized()` writes the mids of all media that is not
    /// rejected.
    public var bundle: [String]?
    public var media: [MediaDescription]

    public init(sessionID: UInt64, version: UInt64 = 1, bundle: [String]? = nil, media: [MediaDescription]) {
        self.sessionID = sessionID
        self.version = version
        self.bundle = bundle
        self.media = media
    }

    /// The transport of all bundled media: that of the first media description that is not rejected.
    public var transport: TransportDescription? { media.first { !$0.isRejected }?.transport }

    /// Why one transport with RTP and RTCP on one port cannot carry this description. Nil if it can.
    ///
    /// A single m-line needs no BUNDLE group (RFC 9143), but every m-line with RTP needs `a=rtcp-mux` (RFC 8834
    /// section 4.5).
    public var separateTransports: String? {
        let used = media.filter { !$0.isRejected }
        if used.count > 1, let bundle, let other = used.first(where: { !bundle.contains($0.mid) }) {
            return "The m-line '\(other.mid.prefix(32))' is not in the BUNDLE group. Bundle all m-lines."
        }
        if used.count > 1, bundle == nil {
            return "The m-lines are not bundled. Add 'a=group:BUNDLE' with all of them."
        }
        if let other = used.first(where: { $0.kind != .application && !$0.isMuxed }) {
            return "The m-line '\(other.mid.prefix(32))' uses a separate port for RTCP. Add 'a=rtcp-mux'."
        }
        return nil
    }

    public subscript(mid mid: String) -> MediaDescription? { media.first { $0.mid == mid } }
}

/// One m-line and its attributes.
public struct MediaDescription: Sendable, Equatable {
    public enum Kind: String, Sendable {
        case audio
        case video
        /// Anything else, such as data channels. Kept so that an answer can refuse it with `isRejected`.
        case application
    }

    public var kind: Kind
    public var mid: String
    /// Port 0 without `a=bundle-only`: the stream is refused or stopped.
    public var isRejected: Bool
    public var direction: MediaDirection
    /// Whether RTCP shares RTP's port (`a=rtcp-mux`, RFC 5761). Ours does.
    public var isMuxed = true
    public var formats: [PayloadFormat]
    public var extensions: [HeaderExtension]
    /// The SSRCs of primary streams, without that of the RTX stream.
    public var ssrcs: [SSRC]
    /// The second SSRC of the first FID group (RFC 5576).
    public var retransmissionSSRC: SSRC?
    /// The layers of simulcast that the end with this description sends or receives. Nil without.
    public var simulcast: Simulcast?
    public var cname: String?
    /// Stream and track identifier as `a=msid` has them, `stream track` (RFC 8830).
    public var msid: String?
    public var transport: TransportDescription
    /// For `application`: the m-line's media, protocol and formats, for the answer to repeat.
    public var applicationLine: ApplicationLine?

    public struct ApplicationLine: Sendable, Equatable {
        public var media: String
        public var proto: String
        public var formats: String

        public init(media: String, proto: String, formats: String) {
            self.media = media
            self.proto = proto
            self.formats = formats
        }
    }

    public init(
        kind: Kind, mid: String, direction: MediaDirection, formats: [PayloadFormat] = [],
        extensions: [HeaderExtension] = [], ssrcs: [SSRC] = [], retransmissionSSRC: SSRC? = nil, cname: String? = nil,
        msid: String? = nil, transport: TransportDescription, isRejected: Bool = false,
        applicationLine: ApplicationLine? = nil
    ) {
        self.kind = kind
        self.mid = mid
        self.isRejected = isRejected
        self.direction = direction
        self.formats = formats
        self.extensions = extensions
        self.ssrcs = ssrcs
        self.retransmissionSSRC = retransmissionSSRC
        self.cname = cname
        self.msid = msid
        self.transport = transport
        self.applicationLine = applicationLine
    }

    /// The formats with this encoding name, compared without case (RFC 8866 section 6.6).
    public func formats(encoding: String) -> [PayloadFormat] {
        formats.filter { $0.encoding.lowercased() == encoding.lowercased() }
    }

    public func format(payloadType: UInt8) -> PayloadFormat? { formats.first { $0.payloadType == payloadType } }

    /// The RTX payload type for this one.
    public func retransmissionPayloadType(for payloadType: UInt8) -> UInt8? {
        formats.first { $0.retransmits == payloadType }?.payloadType
    }
}

/// The layers of an m-line with simulcast: one source, encoded in several sizes or rates (RFC 8853). Each has a name, its
/// rid (RFC 8851).
public struct Simulcast: Sendable, Equatable {
    /// The longest rid. As a header extension of the one-byte form, it has at most so many bytes.
    public static let maximumLength = 16

    /// Whether the end with this description sends the layers, or receives them.
    public var isSending: Bool
    /// In the order of `a=simulcast`. Of alternatives, the first one.
    public var rids: [String]
    /// Those that are not to be sent at first. Read, and not written.
    public var paused: Set<String> = []

    public init(isSending: Bool, rids: [String]) {
        self.isSending = isSending
        self.rids = rids
    }

    /// Whether the text can be a rid: 1...16 letters, digits, hyphens and underscores.
    public static func isValid(_ rid: String) -> Bool {
        (1...maximumLength).contains(rid.utf8.count)
            && rid.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}

public enum MediaDirection: String, Sendable {
    case sendrecv
    case sendonly
    case recvonly
    case inactive

    /// The same direction as seen by the other end.
    public var reversed: MediaDirection {
        switch self {
        case .sendonly: .recvonly
        case .recvonly: .sendonly
        case .sendrecv, .inactive: self
        }
    }
}

/// One payload type of a media description: its `rtpmap`, `fmtp` and `rtcp-fb` lines.
public struct PayloadFormat: Sendable, Equatable {
    public var payloadType: UInt8
    /// Encoding name as written, `VP8`, `H264`, `opus`, `rtx`; empty for a static payload type without `rtpmap`.
    public var encoding: String
    public var clockRate: UInt32
    /// Audio channels. 1 by default.
    public var channels: Int
    /// The `fmtp` value, `a=b;c=d`. Empty without one.
    public var parameters: String
    /// `rtcp-fb` values, `nack`, `nack pli`, `ccm fir`.
    public var feedback: [String]

    public init(
        payloadType: UInt8, encoding: String, clockRate: UInt32, channels: Int = 1, parameters: String = "",
        feedback: [String] = []
    ) {
        self.payloadType = payloadType
        self.encoding = encoding
        self.clockRate = clockRate
        self.channels = channels
        self.parameters = parameters
        self.feedback = feedback
    }

    /// An RTX format for another payload type (RFC 4588 section 8.6).
    public static func retransmission(of payloadType: UInt8, as own: UInt8, clockRate: UInt32 = 90000) -> Self {
        Self(payloadType: own, encoding: "rtx", clockRate: clockRate, parameters: "apt=\(payloadType)")
    }

    /// For `rtx`: the payload type that it retransmits.
    public var retransmits: UInt8? {
        guard encoding.lowercased() == "rtx" else { return nil }
        return parameter("apt").flatMap { UInt8($0) }
    }

    /// The value of one parameter of `parameters`, names compared without case.
    public func parameter(_ name: String) -> String? {
        for pair in parameters.split(separator: ";") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, trimmed(parts[0]).lowercased() == name.lowercased() else { continue }
            return String(trimmed(parts[1]))
        }
        return nil
    }

    private func trimmed(_ text: Substring) -> Substring {
        var text = text
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return text
    }
}

/// The ICE and DTLS parameters of one end.
public struct TransportDescription: Sendable, Equatable {
    /// `a=setup` (RFC 8842): which end begins the DTLS handshake.
    public enum Setup: String, Sendable {
        case actpass
        case active
        case passive
    }

    public var iceUfrag: String
    public var icePwd: String
    public var fingerprints: [Fingerprint]
    public var setup: Setup
    /// Candidate attribute values, `candidate:...` (RFC 8839 section 5.1).
    public var candidates: [String]
    public var endOfCandidates: Bool
    /// `a=ice-lite` (RFC 8839, section 5.3): this end only responds to connectivity checks, so the other one controls.
    public var isLite: Bool

    public init(
        iceUfrag: String, icePwd: String, fingerprints: [Fingerprint], setup: Setup, candidates: [String] = [],
        endOfCandidates: Bool = false, isLite: Bool = false
    ) {
        self.iceUfrag = iceUfrag
        self.icePwd = icePwd
        self.fingerprints = fingerprints
        self.setup = setup
        self.candidates = candidates
        self.endOfCandidates = endOfCandidates
        self.isLite = isLite
    }
}

public import RTP

/// The configuration of a `PeerSession`.
public struct PeerSessionConfiguration: Sendable {
    /// Canonical name in this end's SDES packets, at most 255 bytes (RFC 7022).
    public var cname: String
    /// The SSRC of feedback and reports of an end without senders. Browsers use 1.
    public var reportSSRC: SSRC
    /// Seed of all random numbers in the session: jitter of report times, first RTX sequence numbers. The owner chooses
    /// another for each session.
    public var seed: UInt64
    /// Mean interval between reports. Each follows after 0.5...1.5 times this (RFC 3550, section 6.2). The profile of
    /// RFC 4585, section 3.4 allows less than RFC 3550's minimum of 5 s; browsers use one second for video.
    public var reportInterval: TimeInterval
    /// The interval without media, in units of `reportInterval`: RFC 3550's 5 s.
    static let idleReportIntervals: Int64 = 5
    /// Whether the DTLS engine is released once the peer has sent an authenticated packet, which saves 30 KiB. The session
    /// then needs 20 s to notice a close_notify, instead of none.
    public var releasesHandshake: Bool
    /// The packets of this time leave together, if the session is paced. Longer bursts cost fewer system calls, and queue for
    /// longer on the path.
    public var pacingBurst = TimeInterval.milliseconds(5)
    /// Of a server, which sends to many peers.
    public static let serverPacingBurst = TimeInterval.milliseconds(20)
    /// Largest outgoing RTP packet, without mid, RTX sequence number and SRTP trailer. Our own streams use at most
    /// 1200. The default accepts packets of others that fit into an Ethernet frame.
    public var maximumPacketLength: Int
    /// The default of `maximumPacketLength`.
    public static let standardPacketLength = 1400
    /// Largest outgoing RTCP compound, before SRTCP's trailer.
    public static let maximumCompoundLength = 1200
    /// How many datagrams may wait in `outgoing`. Further ones are dropped and counted (`outgoingFull`).
    public var outgoingCapacity: Int
    /// Time without an authenticated packet until the peer counts as silent.
    public var silence: TimeInterval
    /// How long the peer may not respond to media before the session ends (RFC 7675, section 5.1).
    public var consent: TimeInterval

    public init(
        cname: String, reportSSRC: SSRC = SSRC(1), seed: UInt64, reportInterval: TimeInterval = .seconds(1),
        maximumPacketLength: Int = standardPacketLength, outgoingCapacity: Int = 2048,
        silence: TimeInterval = .seconds(10), consent: TimeInterval = .seconds(30), releasesHandshake: Bool = false
    ) {
        self.cname = cname
        self.reportSSRC = reportSSRC
        self.seed = seed
        self.reportInterval = reportInterval
        self.maximumPacketLength = maximumPacketLength
        self.outgoingCapacity = outgoingCapacity
        self.silence = silence
        self.releasesHandshake = releasesHandshake
        self.consent = consent
    }
}

/// Identifies a sender of one session. Never reused after removal.
public struct SenderID: Hashable, Sendable {
    let slot: Int
    let generation: Int
}

/// Identifies a receiver of one session. Never reused after removal.
public struct ReceiverID: Hashable, Sendable {
    let slot: Int
    let generation: Int
}

/// One outgoing stream.
public struct SenderConfiguration: Sendable {
    public var ssrc: SSRC
    /// SSRC of the RTX stream. Nil disables retransmission.
    public var retransmissionSSRC: SSRC?
    /// Units of the RTP timestamp per second.
    public var clockRate: UInt32
    /// Maps the stream's payload types to those of RTX. NACKed packets of other types are not retransmitted.
    public var retransmissionPayloadTypes: [UInt8: UInt8]
    /// Sent, if it is at most 16 bytes, until the peer's first report on this stream shows that it knows the SSRC (RFC
    /// 9143, section 15).
    public var mid: String?
    /// The name of the layer of simulcast, sent with the mid (RFC 8852). At most 16 bytes.
    public var rid: String?
    /// The header extensions that the peer accepts. See `PeerSession.setExtensions`.
    public var extensions: HeaderExtensionIDs
    /// How many of the sent packets may be retransmitted, the newest ones; 0 means none.
    public var history: Int
    /// Whether its packets are sent before those of other streams, and never held.
    public var isAudio: Bool
    /// Maps the stream's payload types to those of RED that the peer accepts. See `PeerSession.setRedundancy`.
    public var redundancyPayloadTypes: [UInt8: UInt8] = [:]

    public init(
        ssrc: SSRC, retransmissionSSRC: SSRC? = nil, clockRate: UInt32,
        retransmissionPayloadTypes: [UInt8: UInt8] = [:], mid: String? = nil, rid: String? = nil,
        extensions: HeaderExtensionIDs = HeaderExtensionIDs(), history: Int = 512, isAudio: Bool = false
    ) {
        self.rid = rid
        self.ssrc = ssrc
        self.retransmissionSSRC = retransmissionSSRC
        self.clockRate = clockRate
        self.retransmissionPayloadTypes = retransmissionPayloadTypes
        self.mid = mid
        self.extensions = extensions
        self.history = history
        self.isAudio = isAudio
    }
}

/// One incoming stream.
public struct ReceiverConfiguration: Sendable {
    /// The stream's SSRC, if the description has it. Otherwise it is learned from the first packet with the MID
    /// extension, or with a payload type that only this receiver accepts (RFC 9143, section 9.2).
    public var ssrc: SSRC?
    public var retransmissionSSRC: SSRC?
    public var mid: String
    /// The name of the layer, if the m-line has simulcast: its SSRCs are those of the packets with the MID and this rid (RFC
    /// 8852).
    public var rid: String?
    /// The header extensions that the peer sends. See `PeerSession.setExtensions`.
    public var extensions: HeaderExtensionIDs
    public var clockRate: UInt32
    /// Accepted payload types, without RTX. Packets of other types are dropped and counted.
    public var payloadTypes: Set<UInt8>
    /// Maps the stream's payload types to those of RTX.
    public var retransmissionPayloadTypes: [UInt8: UInt8]
    /// Maps the stream's payload types to those of RED (RFC 2198), whose packets arrive as if they had been sent one by one.
    public var redundancyPayloadTypes: [UInt8: UInt8]
    /// Whether to request lost packets.
    public var nack: Bool
    /// Whether the peer follows estimates of how much the path carries (REMB). They count where packets have no transport-wide
    /// numbers.
    public var takesEstimates = false

    public init(
        ssrc: SSRC? = nil, retransmissionSSRC: SSRC? = nil, mid: String, rid: String? = nil,
        extensions: HeaderExtensionIDs = HeaderExtensionIDs(), clockRate: UInt32, payloadTypes: Set<UInt8>,
        retransmissionPayloadTypes: [UInt8: UInt8] = [:], redundancyPayloadTypes: [UInt8: UInt8] = [:], nack: Bool
    ) {
        self.ssrc = ssrc
        self.retransmissionSSRC = retransmissionSSRC
        self.mid = mid
        self.rid = rid
        self.extensions = extensions
        self.clockRate = clockRate
        self.payloadTypes = payloadTypes
        self.retransmissionPayloadTypes = retransmissionPayloadTypes
        self.redundancyPayloadTypes = redundancyPayloadTypes
        self.nack = nack
    }
}

/// The header fields that `send` changes. The SSRC becomes the sender's.
public struct Rewrite: Sendable, Equatable {
    public var payloadType: UInt8
    public var sequenceNumber: SequenceNumber
    public var timestamp: RTPTimestamp
    public var marker: Bool
    /// The change of the payload.
    public var patch: PayloadPatch?

    public init(
        payloadType: UInt8, sequenceNumber: SequenceNumber, timestamp: RTPTimestamp, marker: Bool,
        patch: PayloadPatch? = nil
    ) {
        self.payloadType = payloadType
        self.sequenceNumber = sequenceNumber
        self.timestamp = timestamp
        self.marker = marker
        self.patch = patch
    }

    /// Keeps all fields of the packet.
    public init(keeping header: RTPHeader) {
        self.init(
            payloadType: header.payloadType, sequenceNumber: header.sequenceNumber, timestamp: header.timestamp,
            marker: header.marker)
    }
}

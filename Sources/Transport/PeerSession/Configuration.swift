public import RTP

/// What one `PeerSession` is told once.
public struct PeerSessionConfiguration: Sendable {
    /// Canonical name in this end's SDES packets, at most 255 bytes (RFC 7022).
    public var cname: String
    /// SSRC that feedback and reports of an end without senders come from; 1 is what browsers use.
    public var reportSSRC: SSRC
    /// Seed of all randomness in the session: jitter of report times, first RTX sequence numbers. The owner gives each
    /// session its own.
    public var seed: UInt64
    /// Mean time between reports; each one comes after 0.5...1.5 times this (RFC 3550 section 6.2). The RFC's minimum of
    /// 5 s is halved and more by RFC 4585 section 3.4's profile; browsers use one second for video.
    public var reportInterval: TimeInterval
    /// Largest RTP packet sent, counted without mid, RTX's sequence number and SRTP's trailer. One's own streams keep to
    /// 1200; the default lets what others made pass as long as an Ethernet frame takes it.
    public var maximumPacketLength: Int
    /// What `maximumPacketLength` is unless it is set.
    public static let standardPacketLength = 1400
    /// Largest RTCP compound sent, before SRTCP's trailer.
    public static let maximumCompoundLength = 1200
    /// Datagrams that may wait in `outgoing`; further ones are dropped and counted (`outgoingFull`).
    public var outgoingCapacity: Int
    /// Time without an authenticated packet after which the peer counts as silent.
    public var silence: TimeInterval
    /// Time for which media may go unanswered; then the session ends (RFC 7675 section 5.1).
    public var consent: TimeInterval

    public init(
        cname: String, reportSSRC: SSRC = SSRC(1), seed: UInt64, reportInterval: TimeInterval = .seconds(1),
        maximumPacketLength: Int = standardPacketLength, outgoingCapacity: Int = 2048,
        silence: TimeInterval = .seconds(5), consent: TimeInterval = .seconds(30)
    ) {
        self.cname = cname
        self.reportSSRC = reportSSRC
        self.seed = seed
        self.reportInterval = reportInterval
        self.maximumPacketLength = maximumPacketLength
        self.outgoingCapacity = outgoingCapacity
        self.silence = silence
        self.consent = consent
    }
}

/// Names a sender of one session; never used again after removal.
public struct SenderID: Hashable, Sendable {
    let slot: Int
    let generation: Int
}

/// Names a receiver of one session; never used again after removal.
public struct ReceiverID: Hashable, Sendable {
    let slot: Int
    let generation: Int
}

public enum StreamKind: Sendable {
    case audio
    case video
}

/// One outgoing stream.
public struct SenderConfiguration: Sendable {
    public var kind: StreamKind
    public var ssrc: SSRC
    /// SSRC of the RTX stream; nil sends nothing again.
    public var retransmissionSSRC: SSRC?
    /// Units of the RTP timestamp per second.
    public var clockRate: UInt32
    /// Payload type of the stream to that of its RTX. A NACKed packet whose type is not in here is not sent again.
    public var retransmissionPayloadTypes: [UInt8: UInt8]
    /// The mid and the negotiated id of its header extension (RFC 9143 section 15). Stamped until the peer's first
    /// report on this stream shows that it knows the SSRC. An id of 1...14 and a mid of at most 16 bytes; others are
    /// not stamped.
    public var mid: String?
    public var midExtensionID: UInt8?
    /// Packets kept for retransmission; 0 keeps none. The oldest go first.
    public var cacheCapacity: Int
    /// Bytes of them; the oldest go first.
    public var cacheBytes: Int

    public init(
        kind: StreamKind, ssrc: SSRC, retransmissionSSRC: SSRC? = nil, clockRate: UInt32,
        retransmissionPayloadTypes: [UInt8: UInt8] = [:], mid: String? = nil, midExtensionID: UInt8? = nil,
        cacheCapacity: Int = 512, cacheBytes: Int = 256 * 1024
    ) {
        self.kind = kind
        self.ssrc = ssrc
        self.retransmissionSSRC = retransmissionSSRC
        self.clockRate = clockRate
        self.retransmissionPayloadTypes = retransmissionPayloadTypes
        self.mid = mid
        self.midExtensionID = midExtensionID
        self.cacheCapacity = cacheCapacity
        self.cacheBytes = cacheBytes
    }
}

/// One incoming stream.
public struct ReceiverConfiguration: Sendable {
    public var kind: StreamKind
    /// The stream's SSRC if the description names it. Else the first packet with the right MID extension, or with a
    /// payload type that only this receiver accepts, tells it (RFC 9143 section 9.2).
    public var ssrc: SSRC?
    public var retransmissionSSRC: SSRC?
    public var mid: String
    public var midExtensionID: UInt8?
    public var clockRate: UInt32
    /// Payload types accepted, RTX excluded. Packets with another type are dropped and counted.
    public var payloadTypes: Set<UInt8>
    /// Payload type of the stream to that of its RTX.
    public var retransmissionPayloadTypes: [UInt8: UInt8]
    /// Whether to ask for lost packets.
    public var nack: Bool

    public init(
        kind: StreamKind, ssrc: SSRC? = nil, retransmissionSSRC: SSRC? = nil, mid: String,
        midExtensionID: UInt8? = nil, clockRate: UInt32, payloadTypes: Set<UInt8>,
        retransmissionPayloadTypes: [UInt8: UInt8] = [:], nack: Bool
    ) {
        self.kind = kind
        self.ssrc = ssrc
        self.retransmissionSSRC = retransmissionSSRC
        self.mid = mid
        self.midExtensionID = midExtensionID
        self.clockRate = clockRate
        self.payloadTypes = payloadTypes
        self.retransmissionPayloadTypes = retransmissionPayloadTypes
        self.nack = nack
    }
}

/// What of a packet changes on its way through `send`. Its SSRC becomes the sender's.
public struct Rewrite: Sendable, Equatable {
    public var payloadType: UInt8
    public var sequenceNumber: SequenceNumber
    public var timestamp: RTPTimestamp
    public var marker: Bool
    /// What changes inside the payload.
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

    /// Everything as the packet has it.
    public init(keeping header: RTPHeader) {
        self.init(
            payloadType: header.payloadType, sequenceNumber: header.sequenceNumber, timestamp: header.timestamp,
            marker: header.marker)
    }
}

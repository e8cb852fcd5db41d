public import RTP

/// The result of `PeerSession.receive`.
public enum Received: Sendable, Equatable {
    /// Nothing for the owner: handshake, RTCP, a duplicate, or a dropped and counted datagram.
    case nothing
    /// The buffer now has a decrypted RTP packet of this receiver. A retransmitted one has its original header again.
    /// The payload may be empty if a peer sends only padding. The position's epoch grows when the stream restarts.
    case media(ReceiverID, RTPHeader, StreamPosition)
}

/// Events of a session other than media packets.
///
/// At most one event of a kind waits for each stream. A newer one replaces an older one.
public enum PeerSessionEvent: Sendable, Equatable {
    /// DTLS finished and the peer's certificate is the expected one. Media can flow.
    case secured(SRTPProfile)
    /// The session failed, with the reason in one sentence. The last event.
    case failed(String)
    /// The peer ended the session. The last event.
    case closed
    /// The peer requests a keyframe (PLI or FIR).
    case keyframeRequested(SenderID)
    /// A stream lost more than NACK can repair. For video, `requestKeyframe` helps.
    case lossBeyondRepair(ReceiverID)
    /// SRTP has refused every packet of a stream for half a second or more: the sender's numbers restarted under the
    /// same SSRC, or jumped. Reported once until a packet is valid again.
    case refused(ReceiverID, packets: Int)
    /// The number of packets that failed authentication so far. At most once per second.
    case unauthenticated(packets: Int)
    case senderReport(ReceiverID, SenderReport)
    /// The peer ended this stream. It may restart with another SSRC.
    case bye(ReceiverID)
    /// A new round trip time.
    case roundTrip(TimeInterval)
    /// How fast all streams together should send from now on, with headers and repairs. 0 while so much is on its way
    /// without any report that only audio should be sent. At least once a second while packets are on their way. Not before
    /// something shows how much the path carries.
    case sendingRate(bitsPerSecond: Int)
    /// No authenticated packet arrived for `PeerSessionConfiguration.silence`. The connection may recover.
    case silent
    /// An authenticated packet arrived after `silent`.
    case heard
    /// The peer did not respond to media for `PeerSessionConfiguration.consent`. Sending has stopped. The last event.
    case consentLost
}

/// A sender report of a received stream: the peer's wall clock was `ntp` when its stream was at `rtp`.
public struct SenderReport: Sendable, Equatable {
    public var ntp: NTPTime
    public var rtp: RTPTimestamp
    /// Of the report, or of the stream's last packet if that has the timestamp `rtp`: when `ntp` was news.
    public var arrival: MonotonicTime
    /// The round trip that the same compound measures. Nil if the peer does not reply to extended reports (RFC 3611).
    public var roundTrip: TimeInterval?
    /// The stream's newest packet before it. Nil before the first packet.
    public var after: StreamPosition?

    public init(
        ntp: NTPTime, rtp: RTPTimestamp, arrival: MonotonicTime, roundTrip: TimeInterval? = nil,
        after: StreamPosition? = nil
    ) {
        self.ntp = ntp
        self.rtp = rtp
        self.arrival = arrival
        self.roundTrip = roundTrip
        self.after = after
    }
}

/// Counters of one outgoing stream since its creation.
public struct SenderStatistics: Sendable, Equatable {
    /// Packets and bytes of RTP (header included, SRTP trailer not) sent for the first time.
    public var packets = 0
    public var bytes = 0
    /// Bytes of headers in `bytes`.
    public var headerBytes = 0
    public var retransmittedPackets = 0
    public var retransmittedBytes = 0
    /// Bytes of headers in `retransmittedBytes`.
    public var retransmittedHeaderBytes = 0
    /// NACK packets received, and sequence numbers in them.
    public var nacks = 0
    public var nackedPackets = 0
    /// Requested packets that were not resent because they had left the cache.
    public var retransmissionsMissed = 0
    /// Requested packets that were not resent because they had been resent too recently.
    public var retransmissionsHeldBack = 0
    /// Requested packets that were not resent because repairs had used up their share of the bitrate.
    public var retransmissionsOverBudget = 0
    /// Whether the peer has reported on the stream.
    public var isKnownToPeer = false
    /// Packets that only measured the path, and their bytes: padding, and repeats that the peer did not request.
    public var paddingPackets = 0
    public var paddingBytes = 0
    /// Bytes of repeated payloads in `paddingBytes`.
    public var paddingPayloadBytes = 0
    /// Packets that carried copies of earlier ones (RED), and the bytes of these copies, which `bytes` has, too.
    public var redundantPackets = 0
    public var redundantBytes = 0
    /// By the peer's reports.
    public var expectedLoss = ExpectedLoss()
    /// PLI and FIR received.
    public var keyframeRequests = 0
    /// The FIR of them.
    public var fullIntraRequests = 0
    /// When the peer reported last. Nil before.
    public var reportedAt: MonotonicTime?
    /// The round trips that the peer's reports measured: the last one, their sum and their number.
    public var roundTrip: TimeInterval?
    public var totalRoundTrip = TimeInterval.zero
    public var roundTrips = 0
    /// Lost share of the last report, 0...1, and the total, as the peer reports them.
    public var remoteFractionLost = 0.0
    public var remoteLost = 0
    /// Interarrival jitter at the peer.
    public var remoteJitter = TimeInterval.zero
}

/// Counters of one incoming stream since its creation.
public struct ReceiverStatistics: Sendable, Equatable {
    public var ssrc: SSRC?
    /// SSRC of the RTX stream, if it is known.
    public var retransmissionSSRC: SSRC?
    /// Packets and bytes of RTP passed to the owner, including recovered ones.
    public var packets = 0
    public var bytes = 0
    /// Packets as they arrived: those of RED and RTX, padding and duplicates included.
    public var arrivals = ArrivedPackets()
    /// Packets lost on the network before repair (RFC 3550, A.3).
    public var lost = 0
    /// Missing packets that arrived late, by RTX or in RED.
    public var recovered = 0
    /// Missing packets of which a later one had a copy (RED).
    public var recoveredFromCopies = 0
    /// Packets given up: they did not arrive and are no longer requested.
    public var unrecovered = 0
    public var duplicates = 0
    public var jitter = TimeInterval.zero
    /// NACK packets sent.
    public var nacks = 0
    /// Requested sequence numbers, including repetitions.
    public var nackedPackets = 0
    /// PLIs sent.
    public var keyframeRequests = 0
    /// The packets that the peer has sent, by its reports. Nil before the first.
    public var sent: ReportedPackets?
}

/// Packets of a receiver as they arrived.
public struct ArrivedPackets: Sendable, Equatable {
    public var packets = 0
    public var payloadBytes = 0
    /// Bytes of headers, with their extensions, and of padding.
    public var headerBytes = 0
    /// RTX packets with a payload, and the bytes of these payloads, which `payloadBytes` has, too.
    public var retransmittedPackets = 0
    public var retransmittedBytes = 0
    /// When the last one arrived. Nil before the first.
    public var last: MonotonicTime?

    /// Counts a packet of `length` bytes.
    @inline(__always)
    mutating func add(_ payload: Int, of length: Int, isRetransmission: Bool, now: MonotonicTime) {
        packets += 1
        payloadBytes += payload
        headerBytes += length - payload
        last = now
        guard isRetransmission, payload > 0 else { return }
        retransmittedPackets += 1
        retransmittedBytes += payload
    }
}

/// The counts of a peer's sender reports. They go on when the 32 bits of a report are full.
public struct ReportedPackets: Sendable, Equatable {
    public var packets: Int
    /// Bytes of payload (RFC 3550, section 6.4.1).
    public var bytes: Int
    public var reports = 1
    /// The newest report: the peer's wall clock, and when it arrived.
    public var ntp: NTPTime
    public var arrival: MonotonicTime

    package init(_ information: SenderInformation, now: MonotonicTime) {
        (packets, bytes) = (Int(information.packetCount), Int(information.octetCount))
        (ntp, arrival) = (information.ntp, now)
    }

    package mutating func receive(_ information: SenderInformation, now: MonotonicTime) {
        packets += Self.step(from: packets, to: information.packetCount)
        bytes += Self.step(from: bytes, to: information.octetCount)
        reports += 1
        (ntp, arrival) = (information.ntp, now)
    }

    /// A report that overtook a later one changes nothing.
    private static func step(from count: Int, to reported: UInt32) -> Int {
        let step = reported &- UInt32(truncatingIfNeeded: count)
        return step < 1 << 31 ? Int(step) : 0
    }
}

/// Dropped datagrams by reason.
public struct DroppedDatagrams: Sendable, Equatable {
    /// Neither DTLS nor RTP nor RTCP by its first byte (RFC 7983).
    public var unknownProtocol = 0
    /// DTLS, RTP or RTCP before ICE validated a pair.
    public var beforeConnected = 0
    /// RTP or RTCP before the handshake finished.
    public var beforeSecured = 0
    /// After the session's end.
    public var afterEnd = 0
    /// SRTP or SRTCP with an invalid tag, or replayed.
    public var authenticationFailures = 0
    public var malformed = 0
    /// RTP of a stream without a receiver, and RTP and RTCP of more SSRCs than a session has contexts for.
    public var unknownSSRC = 0
    public var unknownPayloadType = 0
    /// Duplicate RTP.
    public var duplicates = 0
    /// RTP so old that it cannot be distinguished from a duplicate, or of the receiver's previous stream.
    public var tooOld = 0
    /// Padding on an RTX stream.
    public var padding = 0
    /// Outgoing packets that were too long or could not be encrypted.
    public var unprotectable = 0
    /// Outgoing datagrams beyond the capacity of `outgoing`.
    public var outgoingFull = 0
}

public struct PeerSessionStatistics: Sendable, Equatable {
    public var roundTrip: TimeInterval?
    public var dropped = DroppedDatagrams()
    /// Nil while nothing shows how much the path carries.
    public var sending: SendingStatistics?
}

/// The estimates of the path to the peer.
public struct SendingStatistics: Sendable, Equatable {
    /// For all streams together. See `PeerSessionEvent.sendingRate`.
    public var targetBitsPerSecond: Int
    /// That the path carries.
    public var estimatedBitsPerSecond: Int
    /// The time that packets wait in queues on their way.
    public var queue: TimeInterval
    public var roundTrip: TimeInterval?
    /// Bytes of packets that the pacer holds.
    public var heldBytes: Int

    public init(
        targetBitsPerSecond: Int, estimatedBitsPerSecond: Int, queue: TimeInterval, roundTrip: TimeInterval?,
        heldBytes: Int
    ) {
        self.targetBitsPerSecond = targetBitsPerSecond
        self.estimatedBitsPerSecond = estimatedBitsPerSecond
        self.queue = queue
        self.roundTrip = roundTrip
        self.heldBytes = heldBytes
    }
}

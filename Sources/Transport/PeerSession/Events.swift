public import RTP

/// What became of a datagram that was handed to `PeerSession.receive`.
public enum Received: Sendable, Equatable {
    /// Nothing for the owner: handshake, RTCP, a duplicate, or dropped and counted.
    case nothing
    /// The buffer now holds a decrypted RTP packet of this receiver; a retransmitted one has its original header again.
    /// A payload may be empty where a peer sends padding alone. The position's epoch grows when the stream begins anew.
    case media(ReceiverID, RTPHeader, StreamPosition)
}

/// What happened in a session, apart from media packets.
///
/// At most one event of a kind waits for each stream: a newer one takes the place of an older one that was not polled.
public enum PeerSessionEvent: Sendable, Equatable {
    /// DTLS is done and the peer's certificate was the expected one: media flows from here on.
    case secured(SRTPProfile)
    /// The session cannot go on; one sentence says why. Nothing follows.
    case failed(String)
    /// The peer ended the session. Nothing follows.
    case closed
    /// The peer asks for a keyframe (PLI or FIR).
    case keyframeRequested(SenderID)
    /// So much is missing from a stream that NACK will not mend it; `requestKeyframe` is the remedy for video.
    case lossBeyondRepair(ReceiverID)
    /// SRTP refuses every packet of a stream, for half a second and more: the sender's numbers began anew under the same
    /// SSRC, or far from the ones before. Comes once until a packet is good again.
    case refused(ReceiverID, packets: Int)
    /// So many packets failed authentication since the beginning. Comes at most once a second.
    case unauthenticated(packets: Int)
    /// A sender report: on the peer's wall clock it was `ntp` when its stream was at `rtp`; it came in at `at`.
    case senderReport(ReceiverID, ntp: NTPTime, rtp: RTPTimestamp, at: MonotonicTime)
    /// The peer ended this stream. It may begin again with another SSRC.
    case bye(ReceiverID)
    /// A fresh round trip time.
    case roundTrip(TimeInterval)
    /// No authenticated packet has come for `PeerSessionConfiguration.silence`. It may pass by itself.
    case silent
    /// An authenticated packet came after `silent`.
    case heard
    /// Media went unanswered for `PeerSessionConfiguration.consent`; none is sent any longer. Nothing follows.
    case consentLost
}

/// When a session wants `handleTimeout`, and why.
public struct Deadline: Sendable, Equatable {
    public enum Reason: Sendable, Equatable {
        case nothing
        case handshake
        case report
        case nack
        case keyframeRequest
        case liveness
    }

    public var time: MonotonicTime
    public var reason: Reason

    public init(time: MonotonicTime, reason: Reason) {
        self.time = time
        self.reason = reason
    }

    public static let never = Deadline(time: .never, reason: .nothing)

    func earlier(_ time: MonotonicTime, _ reason: Reason) -> Deadline {
        time < self.time ? Deadline(time: time, reason: reason) : self
    }
}

/// Counters of one outgoing stream since it was added.
public struct SenderStatistics: Sendable, Equatable {
    /// Packets and bytes of RTP (header included, SRTP trailer not) sent for the first time.
    public var packets = 0
    public var bytes = 0
    public var retransmittedPackets = 0
    public var retransmittedBytes = 0
    /// NACK packets received, and sequence numbers in them.
    public var nacks = 0
    public var nackedPackets = 0
    /// Asked for again and not sent: no longer in the cache.
    public var retransmissionsMissed = 0
    /// Asked for again and not sent: sent again too short a time ago.
    public var retransmissionsHeldBack = 0
    /// Asked for again and not sent: repairs had used up their share of the bitrate.
    public var retransmissionsOverBudget = 0
    /// Whether the peer has reported on the stream.
    public var isKnownToPeer = false
    /// PLI and FIR received.
    public var keyframeRequests = 0
    /// Lost share of the last report, 0...1, and the sum since the beginning, as the peer reports them.
    public var remoteFractionLost = 0.0
    public var remoteLost = 0
    /// Interarrival jitter at the peer.
    public var remoteJitter = TimeInterval.zero
}

/// Counters of one incoming stream since it was added.
public struct ReceiverStatistics: Sendable, Equatable {
    public var ssrc: SSRC?
    /// Packets and bytes of RTP handed to the owner, recovered ones among them.
    public var packets = 0
    public var bytes = 0
    /// Packets lost on the network (RFC 3550 A.3), before repair.
    public var lost = 0
    /// Missing packets that came after all, by RTX or late.
    public var recovered = 0
    /// Packets given up: neither arrived nor asked for any longer.
    public var unrecovered = 0
    public var duplicates = 0
    public var jitter = TimeInterval.zero
    /// Sequence numbers asked for, repetitions among them.
    public var nackedPackets = 0
    /// PLIs sent.
    public var keyframeRequests = 0
}

/// Datagrams that were dropped, by reason.
public struct DroppedDatagrams: Sendable, Equatable {
    /// Neither DTLS nor RTP nor RTCP by the first byte (RFC 7983).
    public var unknownProtocol = 0
    /// DTLS, RTP or RTCP before ICE had validated a pair.
    public var beforeConnected = 0
    /// RTP or RTCP before the handshake was done.
    public var beforeSecured = 0
    /// After the session's end.
    public var afterEnd = 0
    /// SRTP or SRTCP with a bad tag, or replayed.
    public var authenticationFailures = 0
    public var malformed = 0
    /// RTP of a stream that no receiver is for; RTP and RTCP of more SSRCs than a session keeps contexts for.
    public var unknownSSRC = 0
    public var unknownPayloadType = 0
    /// RTP that came again.
    public var duplicates = 0
    /// RTP so far behind the newest that it can no longer be told from a duplicate, or of what the receiver carried
    /// before.
    public var tooOld = 0
    /// Padding on an RTX stream.
    public var padding = 0
    /// Outgoing packets that could not be encrypted or did not fit.
    public var unprotectable = 0
    /// Outgoing datagrams for which `outgoing` had no room.
    public var outgoingFull = 0
}

public struct PeerSessionStatistics: Sendable, Equatable {
    public var roundTrip: TimeInterval?
    public var dropped = DroppedDatagrams()
}

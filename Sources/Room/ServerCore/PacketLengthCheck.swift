internal import PeerSession
internal import RTP
internal import RoomProtocol

/// Detects a published stream with packets that are too long to forward. Subscribers' sessions drop such packets, so
/// the publisher has to know.
struct PacketLengthCheck {
    /// How many packets were too long.
    private(set) var count = 0

    /// The error for the publisher at the first packet that is too long. Nil for every other packet.
    mutating func problem(with header: RTPHeader, of mid: String) -> RoomError? {
        let length = RTPHeader.minimumLength + header.payloadLength
        guard length > PeerSessionConfiguration.standardPacketLength else { return nil }
        count += 1
        guard count == 1 else { return nil }
        return RoomError(
            .packetTooLong,
            "The m-line '\(mid.prefix(32))' sends RTP packets of \(length) bytes, which cannot be forwarded. Send at "
                + "most \(PeerSessionConfiguration.standardPacketLength) bytes.")
    }
}

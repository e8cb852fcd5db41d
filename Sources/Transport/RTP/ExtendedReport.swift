/// An RTCP extended report (RFC 3611) with which an end that sends no media measures the round trip: it tells its time, and
/// the other end replies with how long it has kept it. Other blocks are skipped.
public struct ExtendedReport: Sendable, Equatable {
    /// How long an end has kept the time of another one (a sub-block of section 4.5).
    public struct Reply: Sendable, Equatable {
        /// The end whose time it is.
        public var ssrc: SSRC
        /// The middle 32 bits of its time.
        public var lastReference: UInt32
        /// Since its arrival, in 65536ths of a second.
        public var delay: UInt32

        public init(ssrc: SSRC, lastReference: UInt32, delay: UInt32) {
            self.ssrc = ssrc
            self.lastReference = lastReference
            self.delay = delay
        }
    }

    private enum Block {
        static let referenceTime: UInt8 = 4
        static let replies: UInt8 = 5
    }

    /// The most replies to read from one packet: ours have one.
    private static let maximumReplies = 32

    public var ssrc: SSRC
    /// The sender's time (section 4.4).
    public var referenceTime: NTPTime?
    public var replies: [Reply]

    public init(ssrc: SSRC, referenceTime: NTPTime? = nil, replies: [Reply] = []) {
        self.ssrc = ssrc
        self.referenceTime = referenceTime
        self.replies = replies
    }

    /// Reads the body of a packet. Nil if a length in it overruns.
    init?(parsing packet: borrowing PacketBuffer, _ start: Int, _ end: Int) {
        guard start + 4 <= end else { return nil }
        self.init(ssrc: SSRC(packet.uint32(at: start)))
        var offset = start + 4
        while offset < end {
            guard offset + 4 <= end else { return nil }
            let blockEnd = offset + 4 + 4 * Int(packet.uint16(at: offset + 2))
            guard blockEnd <= end else { return nil }
            switch packet.bytes[offset] {
            case Block.referenceTime where blockEnd == offset + 12:
                referenceTime = NTPTime(rawValue: packet.uint64(at: offset + 4))
            case Block.replies:
                for place in stride(from: offset + 4, through: blockEnd - 12, by: 12)
                where replies.count < Self.maximumReplies {
                    replies.append(
                        Reply(
                            ssrc: SSRC(packet.uint32(at: place)), lastReference: packet.uint32(at: place + 4),
                            delay: packet.uint32(at: place + 8)))
                }
            default: break
            }
            offset = blockEnd
        }
    }

    /// In bytes, without the packet's first word.
    var serializedLength: Int {
        4 + (referenceTime == nil ? 0 : 12) + (replies.isEmpty ? 0 : 4 + 12 * replies.prefix(Self.maximumReplies).count)
    }

    func write(_ writer: inout RTCPWriter, _ packet: inout PacketBuffer) {
        writer.write(ssrc.rawValue, &packet)
        if let referenceTime {
            writer.write(UInt32(Block.referenceTime) << 24 | 2, &packet)
            writer.write(UInt32(truncatingIfNeeded: referenceTime.rawValue >> 32), &packet)
            writer.write(UInt32(truncatingIfNeeded: referenceTime.rawValue), &packet)
        }
        let replies = replies.prefix(Self.maximumReplies)
        guard !replies.isEmpty else { return }
        writer.write(UInt32(Block.replies) << 24 | UInt32(3 * replies.count), &packet)
        for reply in replies {
            writer.write(reply.ssrc.rawValue, &packet)
            writer.write(reply.lastReference, &packet)
            writer.write(reply.delay, &packet)
        }
    }
}

/// RED, the payload format for redundant audio (RFC 2198): a packet carries copies of the packets before it in front of its
/// primary payload.
///
/// Copies have timestamps, but no sequence numbers. For Opus, whose packets state their lengths, the numbers follow from
/// the timestamps: a copy that ends where its successor begins is the packet before that one.
public enum Redundancy {
    /// The longest copy in bytes, and the longest distance of its timestamp: the fields have 10 and 14 bits.
    public static let longestCopy = 1 << 10 - 1
    public static let longestDistance = 1 << 14 - 1
    /// The bytes before the payloads: for each copy, and for the primary payload.
    public static let copyHeader = 4
    public static let primaryHeader = 1
    /// The most copies of a packet that are read. Chromium sends up to 9.
    static let mostRead = 16

    /// A copy of an earlier packet in a packet of RED.
    public struct Copy: Sendable, Equatable {
        public var payload: Range<Int>
        public var sequenceNumber: SequenceNumber
        public var timestamp: RTPTimestamp
    }

    /// Reads a packet of RED. Returns the range of its primary payload, and adds the copies whose sequence numbers are certain,
    /// the newest first. Returns nil if a length in the packet overruns, or if its primary payload has another type.
    public static func read(
        _ packet: borrowing PacketBuffer, header: RTPHeader, payloadType: UInt8, copies: inout [Copy]
    ) -> Range<Int>? {
        let end = header.payloadEnd
        guard header.payloadOffset >= 0, end <= packet.count, end <= packet.bytes.count else { return nil }
        var place = header.payloadOffset
        let first = copies.count
        var length = 0
        while true {
            guard place < end else { return nil }
            let byte = packet.bytes[place]
            guard byte & 0x80 != 0 else {
                guard byte & 0x7f == payloadType else { return nil }
                place += primaryHeader
                break
            }
            guard place + copyHeader <= end, copies.count - first < mostRead else { return nil }
            let fields = packet.uint24(at: place + 1)
            let size = Int(fields & 0x3ff)
            // The type cannot be known to be that of copies of another codec, so those get no bytes of their own here.
            copies.append(
                Copy(
                    payload: length..<(length + size), sequenceNumber: header.sequenceNumber,
                    timestamp: byte & 0x7f == payloadType
                        ? RTPTimestamp(header.timestamp.rawValue &- (fields >> 10)) : header.timestamp))
            length += size
            place += copyHeader
        }
        guard place + length <= end else { return nil }
        number(&copies, from: first, packet, header: header, at: place)
        return (place + length)..<end
    }

    /// Replaces the copies from `first` on by those whose numbers are certain.
    private static func number(
        _ copies: inout [Copy], from first: Int, _ packet: borrowing PacketBuffer, header: RTPHeader, at start: Int
    ) {
        var successor = (number: header.sequenceNumber, timestamp: header.timestamp)
        var kept = copies.count
        var certain = 0
        for index in stride(from: copies.count - 1, through: first, by: -1) {
            var copy = copies[index]
            let payload = (start + copy.payload.lowerBound)..<(start + copy.payload.upperBound)
            guard let ticks = OpusLength.ticks(of: packet, payload),
                copy.timestamp.rawValue &+ ticks == successor.timestamp.rawValue
            else { break }
            copy.payload = payload
            copy.sequenceNumber = successor.number.advanced(by: -1)
            successor = (copy.sequenceNumber, copy.timestamp)
            kept = index
            certain += 1
            copies[index] = copy
        }
        copies.removeSubrange(first..<kept)
        copies[first..<(first + certain)].reverse()
    }

    /// Makes a packet of RED one with its primary payload alone, without padding. Returns its header.
    ///
    /// - Parameter payload: the range that `read` returned.
    public static func unwrap(
        _ packet: inout PacketBuffer, header: RTPHeader, payload: Range<Int>, payloadType: UInt8
    ) -> RTPHeader {
        precondition(payload.lowerBound >= header.payloadOffset && payload.upperBound <= packet.count)
        var primary = header
        primary.payloadType = payloadType
        primary.hasPadding = false
        primary.payloadEnd = header.payloadOffset + payload.count
        var bytes = packet.bytes.mutableSpan
        let distance = payload.lowerBound - header.payloadOffset
        for index in payload { bytes[unchecked: index - distance] = bytes[unchecked: index] }
        packet.count = primary.payloadEnd
        packet.bytes[0] &= ~0x20
        primary.write(into: &packet)
        return primary
    }
}

/// The length of a packet of Opus (RFC 6716, section 3.1).
enum OpusLength {
    /// The longest packet: 120 ms.
    private static let longest: UInt32 = 5760

    /// In units of the RTP timestamp, 1/48000 s (RFC 7587, section 4.1). Nil for an invalid packet.
    static func ticks(of packet: borrowing PacketBuffer, _ payload: Range<Int>) -> UInt32? {
        guard !payload.isEmpty else { return nil }
        let first = packet.bytes[payload.lowerBound]
        let (mode, length) = (first >> 5, first >> 3 & 3)
        let frame: UInt32 =
            switch mode {
            case 0...2: length == 3 ? 2880 : 480 << UInt32(length)
            case 3: length & 1 == 0 ? 480 : 960
            default: 120 << UInt32(length)
            }
        let count: UInt32
        switch first & 3 {
        case 0: count = 1
        case 1, 2: count = 2
        default:
            guard payload.count > 1 else { return nil }
            count = UInt32(packet.bytes[payload.lowerBound + 1] & 0x3f)
        }
        let ticks = frame * count
        return (1...longest).contains(ticks) ? ticks : nil
    }
}

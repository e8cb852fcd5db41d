extension H264Payload {
    /// The size in the sequence parameter set of a packet, alone or inside a STAP-A (RFC 6184). Nil without one, or if it is
    /// malformed.
    static func frameSize(_ packet: borrowing PacketBuffer, header: RTPHeader) -> FrameSize? {
        let start = header.payloadOffset
        let end = header.payloadEnd
        guard start < end else { return nil }
        switch packet.bytes[start] & 0x1f {
        case 7: return frameSize(packet, start..<end)
        case 24:
            var offset = start + 1
            while offset + 3 <= end {
                let length = Int(packet.uint16(at: offset))
                guard length > 0, offset + 2 + length <= end else { return nil }
                let unit = (offset + 2)..<(offset + 2 + length)
                if packet.bytes[unit.lowerBound] & 0x1f == 7 { return frameSize(packet, unit) }
                offset += 2 + length
            }
            return nil
        default: return nil
        }
    }

    /// Reads a sequence parameter set (ITU-T H.264, 7.3.2.1.1) of the baseline profiles, which rooms carry.
    private static func frameSize(_ packet: borrowing PacketBuffer, _ unit: Range<Int>) -> FrameSize? {
        // The unit's type, profile, constraints and level.
        guard unit.count > 4, packet.bytes[unit.lowerBound + 1] == 66 else { return nil }
        var bits = RawBits(at: unit.lowerBound + 4, end: unit.upperBound)
        guard bits.number(packet) != nil, bits.number(packet) != nil, let order = bits.number(packet) else {
            return nil
        }
        switch order {
        case 0: guard bits.number(packet) != nil else { return nil }
        case 1:
            guard bits.bit(packet) != nil, bits.number(packet) != nil, bits.number(packet) != nil,
                let count = bits.number(packet), count <= 255
            else { return nil }
            for _ in 0..<count { guard bits.number(packet) != nil else { return nil } }
        case 2: break
        default: return nil
        }
        guard bits.number(packet) != nil, bits.bit(packet) != nil, let width = bits.number(packet),
            let height = bits.number(packet), let isWhole = bits.bit(packet), width < 1024, height < 1024
        else { return nil }
        if isWhole == 0 { guard bits.bit(packet) != nil else { return nil } }
        guard bits.bit(packet) != nil, let isCropped = bits.bit(packet) else { return nil }
        var size = FrameSize(width: (width + 1) * 16, height: (height + 1) * 16 * (2 - isWhole))
        if isCropped == 1 {
            guard let left = bits.number(packet), let right = bits.number(packet), let top = bits.number(packet),
                let bottom = bits.number(packet), max(max(left, right), max(top, bottom)) < 16384
            else { return nil }
            // Units of 4:2:0, which is the only format of baseline.
            size.width -= 2 * (left + right)
            size.height -= 2 * (2 - isWhole) * (top + bottom)
        }
        return size.width > 0 && size.height > 0 ? size : nil
    }
}

/// The bits of a NAL unit, without the bytes that prevent start codes (ITU-T H.264, 7.3.1).
private struct RawBits {
    private var at: Int
    private let end: Int
    private var offset = 0
    private var zeros = 0

    init(at: Int, end: Int) {
        self.at = at
        self.end = end
    }

    /// Nil at the end.
    mutating func bit(_ packet: borrowing PacketBuffer) -> Int? {
        if offset == 0 {
            if zeros >= 2, at < end, packet.bytes[at] == 3 {
                at += 1
                zeros = 0
            }
            guard at < end else { return nil }
            zeros = packet.bytes[at] == 0 ? zeros + 1 : 0
        }
        guard at < end else { return nil }
        let value = Int(packet.bytes[at] >> UInt8(7 - offset)) & 1
        offset = (offset + 1) % 8
        if offset == 0 { at += 1 }
        return value
    }

    /// An unsigned number in Exp-Golomb code (9.1). Nil at the end, and beyond 31 bits.
    mutating func number(_ packet: borrowing PacketBuffer) -> Int? {
        var length = 0
        while true {
            guard let next = bit(packet) else { return nil }
            if next == 1 { break }
            length += 1
            guard length <= 31 else { return nil }
        }
        var value = 1
        for _ in 0..<length {
            guard let next = bit(packet) else { return nil }
            value = value << 1 | next
        }
        return value - 1
    }
}

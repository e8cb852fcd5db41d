/// Reads the bits of a unit of H.264, without the bytes that only keep start codes from appearing (ITU-T H.264, 7.4.1).
struct BitReader {
    let bytes: [UInt8]
    private(set) var position = 0

    /// `unit` begins with its header byte, behind the start code.
    init(unit: some Sequence<UInt8>) {
        var bytes: [UInt8] = []
        var zeros = 0
        for byte in unit {
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros + 1 : 0
            bytes.append(byte)
        }
        self.bytes = bytes
    }

    /// Reads bytes as they are.
    init(plain bytes: [UInt8]) { self.bytes = bytes }

    /// Whether more bits were read than there are. The missing ones read as 0.
    var isBeyond: Bool { position > bytes.count * 8 }

    mutating func bits(_ count: Int) -> Int {
        var value = 0
        for _ in 0..<count {
            let byte = position / 8 < bytes.count ? bytes[position / 8] : 0
            value = value << 1 | Int(byte >> (7 - UInt8(position % 8)) & 1)
            position += 1
        }
        return value
    }

    mutating func flag() -> Bool { bits(1) == 1 }

    /// `ue(v)`: unsigned Exp-Golomb.
    mutating func unsigned() -> Int {
        var zeros = 0
        while zeros < 32, !isBeyond, bits(1) == 0 { zeros += 1 }
        return (1 << zeros) - 1 + bits(zeros)
    }

    /// `se(v)`: signed Exp-Golomb.
    mutating func signed() -> Int {
        let code = unsigned()
        return code % 2 == 0 ? -code / 2 : (code + 1) / 2
    }

    /// The position of the last bit that is set, with which the content ends (`rbsp_stop_one_bit`). Nil without one.
    var stopBit: Int? {
        guard let last = bytes.lastIndex(where: { $0 != 0 }) else { return nil }
        return last * 8 + 7 - bytes[last].trailingZeroBitCount
    }
}

/// Writes the bits of a unit of H.264.
struct BitWriter {
    private var bytes: [UInt8] = []
    private var pending: UInt8 = 0
    /// The bits in `pending`, 0 to 7.
    private var count = 0

    var isAligned: Bool { count == 0 }

    mutating func append(_ bit: Bool) { append(bit ? 1 : 0, bits: 1) }

    /// Appends the lowest bits of a value, the highest of them first.
    mutating func append(_ value: Int, bits: Int) {
        for bit in (0..<bits).reversed() {
            pending = pending << 1 | UInt8(truncatingIfNeeded: value >> bit & 1)
            count += 1
            guard count == 8 else { continue }
            bytes.append(pending)
            (pending, count) = (0, 0)
        }
    }

    /// `ue(v)`
    mutating func append(unsigned value: Int) {
        let bits = (value + 1).bitWidth - (value + 1).leadingZeroBitCount
        append(value + 1, bits: 2 * bits - 1)
    }

    /// Appends the bits of a range of a reader.
    mutating func append(_ range: Range<Int>, of source: BitReader) {
        var position = range.lowerBound
        while position < range.upperBound {
            let offset = position % 8
            let taken = min(8 - offset, range.upperBound - position)
            let byte = Int(source.bytes[position / 8])
            append(byte >> (8 - offset - taken), bits: taken)
            position += taken
        }
    }

    /// Fills the last byte with bits of a value.
    mutating func align(with bit: Bool) { while !isAligned { append(bit) } }

    /// The written bytes. Call when the last byte is full.
    var whole: [UInt8] { bytes }

    /// The written bytes, with those that keep start codes from appearing. Call when the last byte is full.
    var unit: [UInt8] {
        var unit: [UInt8] = []
        unit.reserveCapacity(bytes.count + 16)
        var zeros = 0
        for byte in bytes {
            if zeros >= 2, byte <= 3 {
                unit.append(3)
                zeros = 0
            }
            zeros = byte == 0 ? zeros + 1 : 0
            unit.append(byte)
        }
        return unit
    }
}

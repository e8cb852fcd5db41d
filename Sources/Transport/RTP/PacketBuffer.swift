/// A buffer for one datagram, reused for many packets, so that the path of a packet does not allocate.
///
/// Owned by a loop (scratch) or by a cache; never shared. `bytes` keeps its full capacity, and `count` is the packet's
/// length. SRTP grows and shrinks packets in place.
public struct PacketBuffer: ~Copyable, Sendable {
    /// Longest datagram: an Ethernet frame and SRTP's trailer.
    public static let capacity = 2048

    public var bytes: [UInt8]
    public var count: Int

    public init() {
        bytes = [UInt8](repeating: 0, count: Self.capacity)
        count = 0
    }

    /// Replaces the contents with a copy of another packet's.
    public mutating func assign(copying other: borrowing PacketBuffer) {
        copyBytes(from: other, 0..<other.count, to: 0)
        count = other.count
    }

    /// Copies a range of another packet's bytes over this one's, beginning at `offset`. Does not change `count`.
    public mutating func copyBytes(from other: borrowing PacketBuffer, _ range: Range<Int>, to offset: Int) {
        bytes.copyBytes(from: other.bytes, range, to: offset)
    }

    /// Appends bytes. They must fit.
    public mutating func append(_ source: Span<UInt8>) {
        let end = count
        precondition(source.count <= bytes.count - end)
        var into = bytes.mutableSpan
        for index in 0..<source.count { into[unchecked: end &+ index] = source[unchecked: index] }
        count += source.count
    }

    /// The big-endian number at `offset`.
    @inlinable public func uint16(at offset: Int) -> UInt16 {
        UInt16(bytes[offset]) << 8 | UInt16(bytes[offset + 1])
    }

    /// The big-endian number of three bytes at `offset`.
    @inlinable public func uint24(at offset: Int) -> UInt32 {
        UInt32(bytes[offset]) << 16 | UInt32(uint16(at: offset + 1))
    }

    /// The big-endian number at `offset`.
    @inlinable public func uint32(at offset: Int) -> UInt32 {
        UInt32(uint16(at: offset)) << 16 | UInt32(uint16(at: offset + 2))
    }

    /// The big-endian number at `offset`.
    @inlinable public func uint64(at offset: Int) -> UInt64 {
        UInt64(uint32(at: offset)) << 32 | UInt64(uint32(at: offset + 4))
    }

    @inlinable public mutating func setUInt16(_ value: UInt16, at offset: Int) {
        var span = bytes.mutableSpan
        span.setUInt16(value, at: offset)
    }

    @inlinable public mutating func setUInt32(_ value: UInt32, at offset: Int) {
        var span = bytes.mutableSpan
        span.setUInt32(value, at: offset)
    }

    @inlinable public mutating func setUInt64(_ value: UInt64, at offset: Int) {
        setUInt32(UInt32(truncatingIfNeeded: value >> 32), at: offset)
        setUInt32(UInt32(truncatingIfNeeded: value), at: offset + 4)
    }

    /// Replaces the contents with a range of `source`, quickly. Returns false if it exceeds `capacity`.
    public mutating func assign(_ source: borrowing [UInt8], _ range: Range<Int>) -> Bool {
        guard range.count <= Self.capacity else { return false }
        bytes.copyBytes(from: source, range, to: 0)
        count = range.count
        return true
    }

    /// Replaces the contents, byte by byte, so not for media. Returns false if it exceeds `capacity`.
    public mutating func assign(_ source: some Collection<UInt8>) -> Bool {
        guard source.count <= Self.capacity else { return false }
        var index = 0
        for byte in source {
            bytes[index] = byte
            index += 1
        }
        count = index
        return true
    }
}

extension MutableSpan<UInt8> {
    /// Writes a big-endian number.
    @inlinable
    public mutating func setUInt16(_ value: UInt16, at offset: Int) {
        self[offset] = UInt8(truncatingIfNeeded: value >> 8)
        self[offset + 1] = UInt8(truncatingIfNeeded: value)
    }

    /// Writes a big-endian number.
    @inlinable
    public mutating func setUInt32(_ value: UInt32, at offset: Int) {
        setUInt16(UInt16(truncatingIfNeeded: value >> 16), at: offset)
        setUInt16(UInt16(truncatingIfNeeded: value), at: offset + 2)
    }
}

extension [UInt8] {
    /// Copies a range of `source` over this array's elements, beginning at `offset`. Both ranges must exist.
    package mutating func copyBytes(from source: borrowing [UInt8], _ range: Range<Int>, to offset: Int) {
        let start = range.lowerBound
        let length = range.upperBound &- start
        precondition(start >= 0 && range.upperBound <= source.count)
        precondition(offset >= 0 && offset <= count && length <= count &- offset)
        // Nothing in the loop can trap, so the compiler emits vector moves.
        let from = source.span.extracting(range)
        var into = mutableSpan
        for index in 0..<from.count { into[unchecked: offset &+ index] = from[unchecked: index] }
    }
}

/// Datagrams to send together, stored back to back in one reused slab.
public struct DatagramBatch: Sendable {
    /// The slab. Unused bytes follow the last datagram.
    public private(set) var bytes: [UInt8] = []
    /// The end of each datagram in `bytes`.
    public private(set) var ends: [Int] = []

    public init() {}

    public var isEmpty: Bool { ends.isEmpty }
    public var count: Int { ends.count }
    /// Bytes of the datagrams.
    public var used: Int { ends.last ?? 0 }

    public mutating func append(_ packet: borrowing PacketBuffer) {
        reserve(packet.count)
        bytes.copyBytes(from: packet.bytes, 0..<packet.count, to: used)
        ends.append(used + packet.count)
    }

    /// Appends byte by byte, so not for media.
    public mutating func append(_ datagram: some Collection<UInt8>) {
        reserve(datagram.count)
        var offset = used
        for byte in datagram {
            bytes[offset] = byte
            offset += 1
        }
        ends.append(offset)
    }

    /// Appends the datagrams of another batch.
    public mutating func append(_ other: borrowing DatagramBatch) {
        reserve(other.used)
        let start = used
        bytes.copyBytes(from: other.bytes, 0..<other.used, to: start)
        for end in other.ends { ends.append(start + end) }
    }

    /// Lets a closure write a datagram of at most `limit` bytes. It returns the length, or nil to append nothing.
    @discardableResult
    public mutating func append(upTo limit: Int, _ write: (inout MutableSpan<UInt8>) -> Int?) -> Bool {
        reserve(limit)
        let start = used
        var slab = bytes.mutableSpan
        var place = slab._mutatingExtracting(start..<(start + limit))
        let length = write(&place)
        guard let length, length <= limit else { return false }
        ends.append(start + length)
        return true
    }

    private mutating func reserve(_ count: Int) {
        let missing = used + count - bytes.count
        if missing > 0 { bytes.append(contentsOf: repeatElement(0, count: max(missing, bytes.count))) }
    }

    /// Calls the closure for each datagram, in order.
    public func forEach(_ body: (Span<UInt8>) -> Void) {
        var start = 0
        for end in ends {
            body(bytes.span.extracting(start..<end))
            start = end
        }
    }

    /// The datagram at `index`.
    public subscript(index: Int) -> ArraySlice<UInt8> {
        bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]]
    }

    public mutating func removeAll() { ends.removeAll(keepingCapacity: true) }

    /// Removes the datagrams from `first` on.
    public mutating func removeAll(from first: Int) { ends.removeSubrange(first...) }

    /// Removes the datagrams from `first` on that the closure drops. It is called once for each, in order.
    public mutating func remove(from first: Int, where isDropped: () -> Bool) {
        var start = first == 0 ? 0 : ends[first - 1]
        var (kept, used) = (first, start)
        for index in first..<ends.count {
            let end = ends[index]
            if !isDropped() {
                for offset in start..<end { bytes[used + offset - start] = bytes[offset] }
                used += end - start
                ends[kept] = used
                kept += 1
            }
            start = end
        }
        ends.removeLast(ends.count - kept)
    }

    /// Removes the datagrams within the first bytes.
    public mutating func removeFirst(bytes count: Int) {
        bytes.removeFirst(count)
        ends = ends.filter { $0 > count }.map { $0 - count }
    }
}

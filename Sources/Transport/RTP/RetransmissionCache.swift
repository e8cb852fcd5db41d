/// Sent packets for retransmission: a ring of bytes in one slab, with an index by sequence number.
///
/// Storing does not allocate, except the slab once. When the cache is full, the oldest packets are removed.
public struct RetransmissionCache: Sendable {
    private struct Entry {
        /// The packet's position in all bytes written so far. -1 for an empty entry.
        var position = -1
        var length = 0
        var sequenceNumber = SequenceNumber(0)
        var repeatedAt: MonotonicTime?
    }

    public let packetCapacity: Int
    public let byteCapacity: Int
    private var entries: [Entry] = []
    private var slab: [UInt8] = []
    /// All bytes written so far, including those skipped at the slab's end.
    private var head = 0

    /// `packets` is rounded up to a power of two, so that indexes are stable when sequence numbers wrap.
    public init(packets: Int, bytes: Int) {
        var rounded = packets > 0 ? 1 : 0
        while rounded < min(packets, 32768) { rounded *= 2 }
        packetCapacity = rounded
        byteCapacity = rounded > 0 ? max(bytes, PacketBuffer.capacity) : 0
    }

    public mutating func store(_ packet: borrowing PacketBuffer, sequenceNumber: SequenceNumber) {
        guard packetCapacity > 0, packet.count > 0 else { return }
        if entries.isEmpty {
            entries = [Entry](repeating: Entry(), count: packetCapacity)
            slab = [UInt8](repeating: 0, count: byteCapacity)
        }
        let length = packet.count
        var offset = head % byteCapacity
        if offset + length > byteCapacity {
            head += byteCapacity - offset
            offset = 0
        }
        slab.copyBytes(from: packet.bytes, 0..<length, to: offset)
        entries[index(sequenceNumber)] = Entry(position: head, length: length, sequenceNumber: sequenceNumber)
        head += length
    }

    /// Whether the packet is in the cache.
    public func contains(_ sequenceNumber: SequenceNumber) -> Bool { entry(sequenceNumber) != nil }

    public func lastRepeated(_ sequenceNumber: SequenceNumber) -> MonotonicTime? {
        entry(sequenceNumber)?.repeatedAt
    }

    /// The packet's length in bytes. 0 if it is not in the cache.
    public func length(_ sequenceNumber: SequenceNumber) -> Int { entry(sequenceNumber)?.length ?? 0 }

    /// Copies the packet and records the time. Returns false if it is not in the cache.
    public mutating func load(
        _ sequenceNumber: SequenceNumber, into packet: inout PacketBuffer, now: MonotonicTime
    ) -> Bool {
        guard let found = entry(sequenceNumber) else { return false }
        let offset = found.position % byteCapacity
        packet.bytes.copyBytes(from: slab, offset..<(offset + found.length), to: 0)
        packet.count = found.length
        entries[index(sequenceNumber)].repeatedAt = now
        return true
    }

    /// Removes every packet; keeps the memory.
    public mutating func removeAll() {
        for index in entries.indices { entries[index].position = -1 }
    }

    private func index(_ sequenceNumber: SequenceNumber) -> Int { Int(sequenceNumber.rawValue) & (packetCapacity - 1) }

    private func entry(_ sequenceNumber: SequenceNumber) -> Entry? {
        guard !entries.isEmpty else { return nil }
        let entry = entries[index(sequenceNumber)]
        guard entry.position >= 0, entry.sequenceNumber == sequenceNumber, head - entry.position <= byteCapacity
        else { return nil }
        return entry
    }
}

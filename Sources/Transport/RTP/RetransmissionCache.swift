/// Sent packets kept for retransmission: a ring of bytes in one slab, with an index by sequence number.
///
/// Storing allocates nothing but, once, the slab. When packets or bytes run out the oldest packets go.
public struct RetransmissionCache: Sendable {
    private struct Entry {
        /// Where the packet was written, counted in bytes written since the beginning; -1 for an empty entry.
        var position = -1
        var length = 0
        var sequenceNumber = SequenceNumber(0)
        var repeatedAt: MonotonicTime?
    }

    public let packetCapacity: Int
    public let byteCapacity: Int
    private var entries: [Entry] = []
    private var slab: [UInt8] = []
    /// Bytes written since the beginning, those skipped at the slab's end included.
    private var head = 0

    /// `packets` is rounded up to a power of two, so that places stay the same over the wrap of sequence numbers.
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

    /// Whether the packet is still here, and when it was last repeated.
    public func contains(_ sequenceNumber: SequenceNumber) -> Bool { entry(sequenceNumber) != nil }

    public func lastRepeated(_ sequenceNumber: SequenceNumber) -> MonotonicTime? {
        entry(sequenceNumber)?.repeatedAt
    }

    /// Bytes of the packet; 0 when it is gone.
    public func length(_ sequenceNumber: SequenceNumber) -> Int { entry(sequenceNumber)?.length ?? 0 }

    /// Copies the packet out and notes the time; false when it is gone.
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

    /// Forgets every packet; the memory stays.
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

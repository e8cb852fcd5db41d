import RTP

/// A packet that was sent or is about to be: its new numbers, and where its payload is.
struct SentPacket {
    /// The index of the payload in the stream's store. Nil for an empty payload.
    var payload: Int? { index < 0 ? nil : index }
    let number: SequenceNumber
    let timestamp: RTPTimestamp
    let payloadType: UInt8
    let marker: Bool
    let patch: PayloadPatch?
    fileprivate(set) var repeatedAt: MonotonicTime? {
        get { repeated == .zero ? nil : repeated }
        set { repeated = newValue ?? .zero }
    }
    // Without optionals: a subscriber remembers hundreds of packets.
    private let index: Int
    private var repeated = MonotonicTime.zero

    init(payload: Int?, _ rewrite: Rewrite) {
        index = payload ?? -1
        number = rewrite.sequenceNumber
        timestamp = rewrite.timestamp
        payloadType = rewrite.payloadType
        marker = rewrite.marker
        patch = rewrite.patch
    }
}

/// The newest packets that a sender sent, by sequence number. Allocates once.
struct SentHistory {
    private let capacity: Int
    private var packets: [SentPacket?] = []

    /// `capacity` is rounded up to a power of two, so that places are stable when sequence numbers wrap.
    init(capacity: Int) {
        var rounded = capacity > 0 ? 1 : 0
        while rounded < min(capacity, 32768) { rounded *= 2 }
        self.capacity = rounded
    }

    var memory: PacketMemory {
        let packet = MemoryLayout<SentPacket?>.stride
        return PacketMemory(held: packets.count * packet, limit: capacity * packet)
    }

    mutating func insert(_ packet: SentPacket) {
        guard capacity > 0 else { return }
        if packets.isEmpty { packets = [SentPacket?](repeating: nil, count: capacity) }
        packets[place(packet.number)] = packet
    }

    /// Nil if the packet was not sent or is too old.
    subscript(number: SequenceNumber) -> SentPacket? {
        guard !packets.isEmpty, let packet = packets[place(number)], packet.number == number else { return nil }
        return packet
    }

    mutating func repeated(_ number: SequenceNumber, at time: MonotonicTime) {
        packets[place(number)]?.repeatedAt = time
    }

    /// Keeps the memory.
    mutating func removeAll() {
        for place in packets.indices { packets[place] = nil }
    }

    private func place(_ number: SequenceNumber) -> Int { Int(number.rawValue) & (capacity - 1) }
}

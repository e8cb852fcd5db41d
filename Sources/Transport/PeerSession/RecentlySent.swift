import RTP

/// The newest packets of an audio stream, of which later ones may carry copies.
struct RecentlySent {
    /// More than the copies of a packet, because packets may be forwarded out of order.
    private static let capacity = 8

    /// Each at the place of its number.
    private var packets: [SentPacket?] = []

    mutating func insert(_ packet: SentPacket) {
        guard packet.payload != nil else { return }
        if packets.isEmpty { packets = Array(repeating: nil, count: Self.capacity) }
        packets[place(of: packet.number)] = packet
    }

    /// Nil if it was not sent or is too old.
    func packet(_ number: SequenceNumber) -> SentPacket? {
        guard !packets.isEmpty, let packet = packets[place(of: number)], packet.number == number else { return nil }
        return packet
    }

    mutating func removeAll() { packets = [] }

    private func place(of number: SequenceNumber) -> Int { Int(number.rawValue) % Self.capacity }
}

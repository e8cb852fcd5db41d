/// Packets of a receiver without an assigned stream. Media can arrive before the message that assigns the stream.
public struct HeldPackets: Sendable {
    /// A keyframe of 1080p has about 150 packets. Without the first waiting packet the rest is useless, so one more
    /// packet drops them all.
    public static let capacity = 512
    /// Packets kept while it carries a stream that the server may have replaced already: the newest. They are a second
    /// of sound, and 0.3 s of a video at 2 Mbit/s.
    public static let recentCapacity = 64

    public struct Packet: Sendable {
        /// The packet's position in the receiver's stream.
        public var position: StreamPosition
        public var payloadType: UInt8
        public var bytes: [UInt8]
    }

    private var waiting: [Packet] = []
    /// The newest position of a packet that was dropped because the buffer was full.
    private var dropped: StreamPosition?

    public init() {}

    /// Keeps a packet that arrives while the receiver carries nothing.
    public mutating func hold(_ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition) {
        if waiting.count >= Self.capacity { drop(waiting.count) }
        append(packet, header, position)
    }

    /// Keeps a packet that arrives while the receiver carries a stream. It may belong to the next one: the packets
    /// themselves do not tell.
    public mutating func remember(_ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition) {
        if waiting.count >= Self.recentCapacity { drop(waiting.count - Self.recentCapacity + 1) }
        append(packet, header, position)
    }

    /// Whether nothing was dropped of the stream that begins at this number.
    public func isWhole(from first: Int?) -> Bool {
        guard let first, let dropped, dropped.epoch == waiting.last?.position.epoch else { return true }
        return dropped.number < first
    }

    /// Removes all packets and returns those from this number on. Nil returns none.
    public mutating func take(from first: Int?) -> [Packet] {
        defer { self = HeldPackets() }
        guard let first, let epoch = waiting.last?.position.epoch else { return [] }
        return waiting.filter { $0.position.epoch == epoch && $0.position.number >= first }
    }

    private mutating func append(_ packet: borrowing PacketBuffer, _ header: RTPHeader, _ position: StreamPosition) {
        let bytes = (0..<packet.count).map { packet.bytes[$0] }
        waiting.append(Packet(position: position, payloadType: header.payloadType, bytes: bytes))
    }

    private mutating func drop(_ count: Int) {
        for packet in waiting.prefix(count) {
            guard let newest = dropped, newest.epoch == packet.position.epoch else {
                dropped = packet.position
                continue
            }
            dropped?.number = max(newest.number, packet.position.number)
        }
        waiting.removeFirst(count)
    }
}

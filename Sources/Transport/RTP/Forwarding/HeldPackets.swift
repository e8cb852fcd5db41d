/// Keeps the packets of a receiver that carries nothing yet: media can arrive before the message that assigns a stream.
public struct HeldPackets: Sendable {
    /// A keyframe of 1080p has some 150 packets. Without the first of what waits the rest is of no use, so that one more
    /// packet drops them all.
    public static let capacity = 512

    public struct Packet: Sendable {
        /// The place in the stream of the receiver.
        public var position: StreamPosition
        public var payloadType: UInt8
        public var bytes: [UInt8]
    }

    private var waiting: [Packet] = []
    /// Whether packets were dropped for want of room.
    public private(set) var hasOverflowed = false

    public init() {}

    public mutating func hold(_ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition) {
        if waiting.count == Self.capacity {
            waiting.removeAll()
            hasOverflowed = true
        }
        let bytes = (0..<packet.count).map { packet.bytes[$0] }
        waiting.append(Packet(position: position, payloadType: header.payloadType, bytes: bytes))
    }

    /// Takes out what belongs to the stream that begins at this number; nil discards everything.
    public mutating func take(from first: Int?) -> [Packet] {
        defer { self = HeldPackets() }
        guard let first, let epoch = waiting.last?.position.epoch else { return [] }
        return waiting.filter { $0.position.epoch == epoch && $0.position.number >= first }
    }
}

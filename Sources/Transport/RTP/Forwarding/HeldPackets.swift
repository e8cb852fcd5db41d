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
        public var header: RTPHeader
        public var bytes: [UInt8]
    }

    /// The oldest is at `oldest`, and the others follow in a ring.
    private var waiting: [Packet] = []
    private var oldest = 0
    /// The newest position of a packet that was dropped because the buffer was full.
    private var dropped: StreamPosition?

    public init() {}

    /// Keeps a packet that arrives while the receiver carries nothing.
    public mutating func hold(_ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition) {
        straighten()
        if waiting.count >= Self.capacity { drop(waiting.count) }
        append(packet, header, position)
    }

    /// Keeps a packet that arrives while the receiver carries a stream. It may belong to the next one: the packets
    /// themselves do not tell.
    public mutating func remember(_ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition) {
        if waiting.count > Self.recentCapacity {
            straighten()
            drop(waiting.count - Self.recentCapacity)
        }
        guard waiting.count == Self.recentCapacity else { return append(packet, header, position) }
        // Takes the place and the memory of the oldest one.
        forget(waiting[oldest].position)
        waiting[oldest].position = position
        waiting[oldest].header = header
        waiting[oldest].bytes.removeAll(keepingCapacity: true)
        waiting[oldest].bytes.append(contentsOf: packet.bytes[..<packet.count])
        oldest = (oldest + 1) % waiting.count
    }

    /// Whether nothing was dropped of the stream that begins at this number.
    public func isWhole(from first: Int?) -> Bool {
        guard let first, let dropped, dropped.epoch == newest?.position.epoch else { return true }
        return dropped.number < first
    }

    /// Removes all packets and returns those from this number on. Nil returns none.
    public mutating func take(from first: Int?) -> [Packet] {
        defer { self = HeldPackets() }
        straighten()
        guard let first, let epoch = waiting.last?.position.epoch else { return [] }
        return waiting.filter { $0.position.epoch == epoch && $0.position.number >= first }
    }

    private var newest: Packet? { oldest == 0 ? waiting.last : waiting[oldest - 1] }

    private mutating func append(_ packet: borrowing PacketBuffer, _ header: RTPHeader, _ position: StreamPosition) {
        waiting.append(
            Packet(
                position: position, header: header, bytes: Array(packet.bytes[..<packet.count])))
    }

    private mutating func drop(_ count: Int) {
        for packet in waiting.prefix(count) { forget(packet.position) }
        waiting.removeFirst(count)
    }

    private mutating func forget(_ position: StreamPosition) {
        guard let newest = dropped, newest.epoch == position.epoch else { return dropped = position }
        dropped?.number = max(newest.number, position.number)
    }

    /// Moves the oldest packet to the first place.
    private mutating func straighten() {
        guard oldest > 0 else { return }
        waiting = Array(waiting[oldest...] + waiting[..<oldest])
        oldest = 0
    }
}

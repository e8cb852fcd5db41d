/// The parts of a stream's newest packets that a late receiver needs, beside the payloads in a `PacketStore`.
///
/// Remembers the last keyframe, so that a receiver can begin there instead of at the next one. A ring: the index of a
/// packet is that of its payload. Allocates only to grow. It is told the time.
public struct RecentPackets: Sendable {
    /// When a receiver can still begin at the last keyframe.
    public struct Limits: Sendable {
        /// A publisher gets at most one keyframe request per second. So either the last keyframe is young enough, or
        /// another may be requested. The receiver decodes this much video at once, before it shows the present.
        public var age = TimeInterval.seconds(1)
        /// Of the keyframe and all that followed: half of a store, so that live packets overwrite none of them.
        public var bytes = 512 * 1024
        /// As many as a subscriber's session can retransmit.
        public var packets = 512

        public init() {}
    }

    public struct Packet: Sendable {
        public var position: StreamPosition
        public var timestamp: RTPTimestamp
        public var marker: Bool
        /// Whether no later packet of its epoch arrived before it.
        public var isNewest: Bool
        /// Nil for a packet that receivers do not get, such as padding.
        public var payload: PayloadDescriptor?
        public var arrival: MonotonicTime

        public init(
            position: StreamPosition, timestamp: RTPTimestamp, marker: Bool, isNewest: Bool,
            payload: PayloadDescriptor?, arrival: MonotonicTime
        ) {
            self.position = position
            self.timestamp = timestamp
            self.marker = marker
            self.isNewest = isNewest
            self.payload = payload
            self.arrival = arrival
        }
    }

    private struct Keyframe {
        var epoch: Int
        var timestamp: RTPTimestamp
        var arrival: MonotonicTime
    }

    /// Powers of two. Half is for the packets that a receiver begins with, the rest for those that arrive meanwhile.
    private static let firstCapacity = 256
    private static let maximumCapacity = 1024

    private let limits: Limits
    private var packets: [Packet] = []
    private var next = 0
    /// The newest keyframe, whether or not a receiver can begin there.
    private var keyframe: Keyframe?
    /// The index of its first packet. Nil if no receiver can begin there.
    private var first: Int?
    /// Bytes of payload from there on.
    private var bytes = 0

    public init(limits: Limits = Limits()) { self.limits = limits }

    /// Adds the packet whose payload has the next index, `index`.
    public mutating func add(_ packet: Packet, at index: Int, length: Int) {
        findKeyframe(packet, at: index)
        if let first, let keyframe {
            bytes += length
            let isYoung = packet.arrival - keyframe.arrival <= limits.age
            if !isYoung || bytes > limits.bytes || index - first >= limits.packets { self.first = nil }
        }
        if packets.isEmpty {
            packets = [Packet](repeating: packet, count: Self.firstCapacity)
        } else if let first, index - first >= packets.count / 2, packets.count < Self.maximumCapacity {
            grow()
        }
        packets[index & (packets.count - 1)] = packet
        next = index + 1
    }

    /// Several packets of one H.264 keyframe can look like its first: parameter sets, and each slice.
    private mutating func findKeyframe(_ packet: Packet, at index: Int) {
        guard packet.isNewest, packet.payload?.isStart == true else { return }
        if let keyframe, keyframe.epoch == packet.position.epoch, keyframe.timestamp == packet.timestamp { return }
        keyframe = Keyframe(epoch: packet.position.epoch, timestamp: packet.timestamp, arrival: packet.arrival)
        first = index
        bytes = 0
    }

    private mutating func grow() {
        var larger = [Packet](repeating: packets[0], count: packets.count * 2)
        for index in max(0, next - packets.count)..<next {
            larger[index & (larger.count - 1)] = packets[index & (packets.count - 1)]
        }
        packets = larger
    }

    /// Receivers have to wait for the next keyframe: packets are missing here, or the stream restarted.
    public mutating func forgetKeyframe() { first = nil }

    /// The index at which a receiver can begin now. Nil if it has to wait for a keyframe.
    public func start(now: MonotonicTime) -> Int? {
        guard let first, let keyframe, now - keyframe.arrival <= limits.age else { return nil }
        return first
    }

    /// How many packets have room.
    var capacity: Int { packets.count }

    /// Nil if the packet is no longer here, or not yet.
    subscript(index: Int) -> Packet? {
        guard index >= 0, index < next, index >= next - packets.count else { return nil }
        return packets[index & (packets.count - 1)]
    }
}

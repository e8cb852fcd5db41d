/// The parts of a stream's newest packets that a late receiver needs, beside the payloads in a `PacketStore`.
///
/// Remembers the last keyframe, so that a receiver can begin there instead of at the next one. A ring: the index of a
/// packet is that of its payload. Allocates only to grow. It is told the time.
public struct RecentPackets: Sendable {
    // A receiver can begin at a keyframe up to these limits.
    /// A publisher gets at most one keyframe request per second. So either the last keyframe is young enough, or
    /// another may be requested. The receiver decodes this much video at once, before it shows the present.
    private static let longestAge = TimeInterval.seconds(1)
    /// Of the keyframe and all that followed: half of a store, so that live packets overwrite none of them.
    private static let maximumBytes = 512 * 1024
    /// As many as a subscriber's session can retransmit.
    private static let maximumPackets = 512

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

    /// Where a receiver can begin.
    public struct Start: Sendable, Equatable {
        /// The index of the keyframe's first packet.
        public var keyframe: Int
        /// The index of the first packet to arrive of those that follow it. Smaller if they overtook it.
        public var rest: Int

        /// The index of the oldest packet of them.
        public var first: Int { min(keyframe, rest) }
    }

    private struct Keyframe {
        var position: StreamPosition
        var timestamp: RTPTimestamp
        var arrival: MonotonicTime
    }

    /// Powers of two. Half is for the packets that a receiver begins with, the rest for those that arrive meanwhile.
    private static let firstCapacity = 256
    private static let maximumCapacity = 1024

    private var packets: [Packet] = []
    private var next = 0
    /// The index from which on no packet of the stream is left out.
    private var since = 0
    /// The newest keyframe, whether or not a receiver can begin there.
    private var keyframe: Keyframe?
    /// Nil if no receiver can begin there.
    private var first: Start?
    /// Bytes of payload from there on.
    private var bytes = 0

    public init() {}

    /// Adds the packet whose payload has the next index, `index`.
    public mutating func add(_ packet: Packet, at index: Int, length: Int) {
        findKeyframe(packet, at: index)
        if let first, let keyframe {
            bytes += length
            let isYoung = packet.arrival - keyframe.arrival <= Self.longestAge
            if !isYoung || bytes > Self.maximumBytes || index - first.first >= Self.maximumPackets { self.first = nil }
        }
        if packets.isEmpty {
            packets = [Packet](repeating: packet, count: Self.firstCapacity)
        } else if let first, index - first.first >= packets.count / 2, packets.count < Self.maximumCapacity {
            grow()
        }
        packets[index & (packets.count - 1)] = packet
        next = index + 1
    }

    /// How far back the packets that overtook a keyframe's first one are looked for.
    private static let searched = 512
    /// How many packets of before the keyframe may lie among those that overtook it.
    private static let mixed = 16

    private mutating func findKeyframe(_ packet: Packet, at index: Int) {
        guard packet.payload?.isStart == true else { return }
        if let keyframe, keyframe.position.epoch == packet.position.epoch {
            let isEarlier = packet.position.number < keyframe.position.number
            // Several packets of one H.264 keyframe can look like its first: parameter sets, and each slice. The earliest
            // one counts.
            if keyframe.timestamp == packet.timestamp ? !isEarlier : isEarlier { return }
        }
        keyframe = Keyframe(position: packet.position, timestamp: packet.timestamp, arrival: packet.arrival)
        first = nil
        bytes = 0
        if packet.isNewest {
            first = Start(keyframe: index, rest: index + 1)
        } else if let rest = overtaking(packet.position, before: index) {
            first = Start(keyframe: index, rest: rest)
        }
    }

    /// The index of the first of the packets that arrived before an earlier one. Nil if some of them may no longer be here.
    private func overtaking(_ position: StreamPosition, before index: Int) -> Int? {
        var rest: Int?
        var earlier = 0
        var place = index - 1
        while place >= max(since, index - Self.searched), let other = self[place], earlier < Self.mixed {
            // All packets of the epoch are here.
            guard other.position.epoch == position.epoch else { return rest }
            if other.position.number > position.number { rest = place } else { earlier += 1 }
            place -= 1
        }
        // Packets from before the keyframe lie before those that overtook it, or the stream began with it.
        return earlier > 0 || place < 0 ? rest : nil
    }

    private mutating func grow() {
        var larger = [Packet](repeating: packets[0], count: packets.count * 2)
        for index in max(0, next - packets.count)..<next {
            larger[index & (larger.count - 1)] = packets[index & (packets.count - 1)]
        }
        packets = larger
    }

    /// Receivers have to wait for the next keyframe: packets are missing here, or the stream restarted.
    public mutating func forgetKeyframe() {
        first = nil
        since = next
    }

    /// Where a receiver can begin now. Nil if it has to wait for a keyframe.
    public func start(now: MonotonicTime) -> Start? {
        guard let first, let keyframe, now - keyframe.arrival <= Self.longestAge else { return nil }
        return first
    }

    package var memory: PacketMemory {
        let packet = MemoryLayout<Packet>.stride
        return PacketMemory(held: packets.count * packet, limit: Self.maximumCapacity * packet)
    }

    /// How many packets have room.
    var capacity: Int { packets.count }

    /// Nil if the packet is no longer here, or not yet.
    subscript(index: Int) -> Packet? {
        guard index >= 0, index < next, index >= next - packets.count else { return nil }
        return packets[index & (packets.count - 1)]
    }
}

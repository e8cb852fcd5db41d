internal import RTP

/// Puts the packets of one epoch of a layer in order, and waits for those that may still come. It is told the time.
struct RecordingOrder {
    /// A packet, with its payload if it has to wait.
    struct Packet {
        var position: StreamPosition
        var timestamp: RTPTimestamp
        var marker: Bool
        /// Nil for padding.
        var payload: PayloadDescriptor?
        var arrival: MonotonicTime
        /// Whether packets before it never came.
        var isAfterGap = false
    }

    enum Turn {
        case now
        /// Others are missing before it.
        case later
        /// Its place is past.
        case never
    }

    /// How long a gap stays open: senders repeat no packets that are older.
    static let patience = RepairBounds.longestAge
    /// How many packets wait at most: a second of 10 Mbit/s.
    static let capacity = 1024

    /// Nil before the first packet.
    private var next: Int?
    /// By their numbers.
    private var waiting: [(packet: Packet, bytes: [UInt8])] = []
    /// The packets that never came.
    private(set) var missing = 0

    /// Whether a packet's turn has come. If so, the caller uses it, and then those of `nextReady`. If it comes later, `hold` it.
    mutating func turn(of number: Int) -> Turn {
        let expected = next ?? number
        guard number >= expected else { return .never }
        guard number == expected else { return .later }
        next = number + 1
        return .now
    }

    /// Keeps a packet until its turn, no longer than those that follow it. Ignores one that waits already.
    mutating func hold(_ packet: Packet, _ bytes: [UInt8]) {
        var packet = packet
        var place = waiting.count
        while place > 0, waiting[place - 1].packet.position.number > packet.position.number { place -= 1 }
        if place > 0, waiting[place - 1].packet.position.number == packet.position.number { return }
        if place < waiting.count { packet.arrival = min(packet.arrival, waiting[place].packet.arrival) }
        waiting.insert((packet, bytes), at: place)
    }

    /// When the oldest gap closes. `.never` without one.
    var deadline: MonotonicTime { waiting.first.map { $0.packet.arrival + Self.patience } ?? .never }

    /// The packets that wait no longer, in order.
    mutating func ready(now: MonotonicTime) -> [(packet: Packet, bytes: [UInt8])] {
        guard !waiting.isEmpty, var expected = next else { return [] }
        var count = 0
        while count < waiting.count {
            let packet = waiting[count].packet
            let isLate = now >= packet.arrival + Self.patience || waiting.count - count > Self.capacity
            guard packet.position.number == expected || isLate else { break }
            close(before: count, expected: expected)
            expected = packet.position.number + 1
            count += 1
        }
        guard count > 0 else { return [] }
        next = expected
        defer { waiting.removeFirst(count) }
        return Array(waiting[..<count])
    }

    /// The packets that waited, because none before them is awaited any longer.
    mutating func giveUp() -> [(packet: Packet, bytes: [UInt8])] {
        for place in waiting.indices {
            let number = waiting[place].packet.position.number
            close(before: place, expected: next ?? number)
            next = number + 1
        }
        defer { waiting = [] }
        return waiting
    }

    /// Counts the packets that never came before a waiting one.
    private mutating func close(before place: Int, expected: Int) {
        let gap = waiting[place].packet.position.number - expected
        missing += gap
        waiting[place].packet.isAfterGap = gap > 0
    }

    /// Begins with the first packet of another epoch, or of another layer.
    mutating func restart() { next = nil }
}

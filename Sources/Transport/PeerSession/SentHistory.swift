import RTP

/// A packet that was sent or is about to be: its new numbers, and where its payload is.
struct SentPacket: Equatable {
    /// The index of the payload in the stream's store. Nil for an empty payload.
    var payload: Int?
    var number: SequenceNumber
    var timestamp: RTPTimestamp
    var payloadType: UInt8
    var marker: Bool
    var patch: PayloadPatch?
    /// Whether the payload is in the stream's former store.
    var isFormer = false

    init(payload: Int?, _ rewrite: Rewrite) {
        self.payload = payload
        number = rewrite.sequenceNumber
        timestamp = rewrite.timestamp
        payloadType = rewrite.payloadType
        marker = rewrite.marker
        patch = rewrite.patch
    }
}

/// The newest packets that a sender sent, by sequence number, as long as their payloads are in the store.
///
/// Most packets continue the packet before: the next number, the next payload of the store, the same distance to its
/// timestamp. The history keeps *runs* of such packets, so its size depends on losses and source changes, not on the
/// packet rate. With thousands of packets of one stream, it has a few dozen bytes.
struct SentHistory {
    /// The most runs. A run is a frame while picture ids are rewritten, so these are 8 s of video at 30 frames/s then, and
    /// less if packets are reordered.
    static let maximumRuns = 256

    private struct Run {
        /// The first packet. Its timestamp and marker are those in the store, changed as below.
        let first: SequenceNumber
        /// How many packets. The others follow the first in number and in the store.
        var count: UInt16 = 1
        let payloadType: UInt8
        /// Nil if the markers are those in the store.
        let marker: Bool?
        /// Added to the timestamps in the store. The timestamp itself without a payload.
        let ticks: UInt32
        /// The index of the first payload. Negative without one.
        let payload: Int
        let patch: PayloadPatch?

        init(_ packet: SentPacket, of store: PacketStore) {
            first = packet.number
            payloadType = packet.payloadType
            patch = packet.patch
            guard let payload = packet.payload else {
                self.payload = -1
                ticks = packet.timestamp.rawValue
                marker = packet.marker
                return
            }
            self.payload = payload
            ticks = packet.timestamp.rawValue &- store.timestamp(of: payload).rawValue
            marker = packet.marker == store.marker(of: payload) ? nil : packet.marker
        }

        /// Adds the packet if it continues the run.
        mutating func take(_ packet: SentPacket, of store: PacketStore) -> Bool {
            guard let payload = packet.payload, self.payload + Int(count) == payload, self.payload >= 0,
                count < Int16.max, first.advanced(by: Int(count)) == packet.number,
                packet.payloadType == payloadType, marker == nil, packet.patch == patch
            else { return false }
            guard store.marker(of: payload) == packet.marker,
                store.timestamp(of: payload).rawValue &+ ticks == packet.timestamp.rawValue
            else { return false }
            count += 1
            return true
        }

        func has(_ number: SequenceNumber) -> Bool { (0..<Int(count)).contains(number.distance(from: first)) }

        /// Nil if its payload is no longer in the store.
        func packet(_ number: SequenceNumber, of store: PacketStore) -> SentPacket? {
            let place = number.distance(from: first)
            let index = payload < 0 ? nil : payload + place
            if let index, !store.contains(index) { return nil }
            return SentPacket(
                payload: index,
                Rewrite(
                    payloadType: payloadType, sequenceNumber: number,
                    timestamp: RTPTimestamp((index.map { store.timestamp(of: $0).rawValue } ?? 0) &+ ticks),
                    marker: marker ?? index.map { store.marker(of: $0) } ?? false, patch: patch))
        }

        /// The same numbers without payloads, all with the last timestamp. Nil if that is no longer in the store.
        func withoutPayloads(of store: PacketStore) -> Run? {
            guard let last = packet(first.advanced(by: Int(count) - 1), of: store) else { return nil }
            let rewrite = Rewrite(
                payloadType: payloadType, sequenceNumber: first, timestamp: last.timestamp, marker: false)
            var run = Run(SentPacket(payload: nil, rewrite), of: store)
            run.count = count
            return run
        }
    }

    /// How many numbers back a packet is found.
    let capacity: Int
    private var runs: [Run] = []
    private var newest = SequenceNumber(0)

    /// `capacity` is at most 32768, half of the sequence numbers.
    init(capacity: Int) { self.capacity = min(capacity, 32768) }

    /// Adds a packet whose payload is in `store`, as those of all others.
    mutating func insert(_ packet: SentPacket, of store: PacketStore) {
        guard capacity > 0 else { return }
        if runs.isEmpty || packet.number.distance(from: newest) > 0 { newest = packet.number }
        if !runs.isEmpty, runs[runs.count - 1].take(packet, of: store) { return }
        if runs.count == Self.maximumRuns { runs.removeFirst(Self.maximumRuns / 4) }
        runs.append(Run(packet, of: store))
    }

    /// Nil if the packet was not sent or is too old.
    func packet(_ number: SequenceNumber, of store: PacketStore) -> SentPacket? {
        guard !runs.isEmpty, (0..<capacity).contains(newest.distance(from: number)) else { return nil }
        return runs.last { $0.has(number) }?.packet(number, of: store)
    }

    /// The packet with the newest number, or so many before it.
    func newest(_ back: Int, of store: PacketStore) -> SentPacket? { packet(newest.advanced(by: -back), of: store) }

    mutating func removeAll() { runs = [] }

    /// Keeps the numbers of the packets without their payloads.
    mutating func removePayloads(of store: PacketStore) { runs = runs.compactMap { $0.withoutPayloads(of: store) } }

    /// For tests.
    var runCount: Int { runs.count }

    var memory: PacketMemory {
        let run = MemoryLayout<Run>.stride
        return PacketMemory(held: runs.capacity * run, limit: capacity > 0 ? 2 * Self.maximumRuns * run : 0)
    }
}

/// When a sender last resent packets, and how often.
struct RepeatTimes {
    struct Entry {
        var number: SequenceNumber
        var at: MonotonicTime
        /// How often it was resent.
        var count = 1

        /// Whether another repeat is too early. A receiver with little time left asks before it can have missed this one,
        /// and again soon after the second.
        func isOnItsWay(now: MonotonicTime, roundTrip: TimeInterval?) -> Bool {
            let trip = roundTrip ?? .zero
            return now - at < max(RepeatTimes.shortestInterval, count == 1 ? trip * 3 / 8 : trip / 10)
        }
    }

    /// Between two repeats of a packet, whatever the round trip.
    private static let shortestInterval = TimeInterval.milliseconds(10)
    /// The older half is forgotten beyond these. The budget limits repeats too.
    private static let maximum = 128

    private var entries: [Entry] = []

    /// The last repeat of a packet. Nil if it was not resent, or long ago: the numbers wrap.
    func last(_ number: SequenceNumber, now: MonotonicTime) -> Entry? {
        entries.last { $0.number == number && now - $0.at <= RepairBounds.longestAge }
    }

    mutating func repeated(_ number: SequenceNumber, at time: MonotonicTime) {
        let count = (last(number, now: time)?.count ?? 0) + 1
        if entries.count == Self.maximum { entries.removeFirst(Self.maximum / 2) }
        entries.append(Entry(number: number, at: time, count: count))
    }

    mutating func removeAll() { entries = [] }
}

/// About when packets were sent, by their numbers.
struct SendTimes {
    /// Between two notes.
    private static let interval = RepairBounds.longestAge / 16
    private static let capacity = 32

    /// A ring; `next` is the place of the next one.
    private var notes: [(number: SequenceNumber, at: MonotonicTime)] = []
    private var next = 0
    private var last = MonotonicTime.zero

    mutating func sent(_ number: SequenceNumber, at time: MonotonicTime) {
        guard notes.isEmpty || time - last >= Self.interval else { return }
        last = time
        if notes.count < Self.capacity {
            notes.append((number, time))
        } else {
            notes[next] = (number, time)
            next = (next + 1) % Self.capacity
        }
    }

    /// Whether a sent packet is older than `RepairBounds.longestAge`, but for the interval between two notes. A packet that
    /// was the last one before a pause is missed only after it, so the age is that of the packets that followed.
    func isOld(_ number: SequenceNumber, now: MonotonicTime) -> Bool {
        notes.contains { now - $0.at > RepairBounds.longestAge && $0.number.distance(from: number) > 0 }
    }
}

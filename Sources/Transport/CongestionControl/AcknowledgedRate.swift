internal import RTP

/// The rate that arrives at the receiver, over the last second or more.
///
/// The largest gap between arrivals does not count, so that a delay spike does not look like a lower rate. The result
/// never exceeds the rate of sending, so that the burst after the spike does not look like a higher one (the robust
/// throughput estimator of libwebrtc).
struct AcknowledgedRate: Sendable {
    static let packets = 20
    static let maximumPackets = 500
    static let shortest = TimeInterval.seconds(1)
    static let longest = TimeInterval.seconds(5)
    static let recent = TimeInterval.milliseconds(250)
    static let neededPackets = 10
    /// A packet that arrived earlier than the newest by more than this shows that the receiver's clock was set.
    static let maximumReordering = TimeInterval.seconds(1)

    private struct Sample {
        var sent: MonotonicTime
        var arrival: MonotonicTime
        var bytes: Double
    }

    /// The two largest times between arrivals.
    private struct Gaps {
        private(set) var (largest, second) = (TimeInterval.zero, TimeInterval.zero)
        /// How many are as long as the second, without the largest.
        private var seconds = 0

        mutating func add(_ gap: TimeInterval) {
            if gap > largest {
                seconds = second == largest ? seconds + 1 : 1
                (second, largest) = (largest, gap)
            } else if gap > second {
                (second, seconds) = (gap, 1)
            } else if gap == second {
                seconds += 1
            }
        }

        /// Returns false if the two largest of the others are unknown.
        mutating func remove(_ gap: TimeInterval) -> Bool {
            guard gap >= second else { return true }
            guard gap == second else { return false }
            seconds -= 1
            return seconds > 0
        }
    }

    /// In the order of arrivals.
    private var window = Ring<Sample>(capacity: 64)
    private var newestRemoved: MonotonicTime?
    // Of the whole window, so that a report costs no look at each packet of the last second.
    private var bytes = 0.0
    /// Nil after one of them has left.
    private var gaps: Gaps? = Gaps()
    /// The packets that were sent before one that arrived earlier.
    private var overtaken = 0

    mutating func add(_ packet: PacketResult) {
        guard let arrival = packet.arrival else { return }
        let sample = Sample(sent: packet.sent, arrival: arrival, bytes: Double(packet.bytes))
        bytes += sample.bytes
        guard window.count > 0 else { return window.append(sample) }
        let last = window[window.count - 1]
        window.append(sample)
        if arrival >= last.arrival {
            gaps?.add(arrival - last.arrival)
            if sample.sent < last.sent { overtaken += 1 }
        } else {
            guard last.arrival - arrival <= Self.maximumReordering else {
                self = AcknowledgedRate()
                return
            }
            sortLast()
        }
        while isOutside(window[0]) { removeFirst() }
    }

    /// Moves the newest packet to its place among the arrivals.
    private mutating func sortLast() {
        var index = window.count - 1
        while index > 0, window[index].arrival < window[index - 1].arrival {
            let later = window[index - 1]
            window[index - 1] = window[index]
            window[index] = later
            index -= 1
        }
        gaps = nil
        overtaken = (1..<window.count).count { window[$0].sent < window[$0 - 1].sent }
    }

    private mutating func removeFirst() {
        let (oldest, next) = (window[0], window[1])
        newestRemoved = max(newestRemoved ?? oldest.sent, oldest.sent)
        bytes -= oldest.bytes
        if next.sent < oldest.sent { overtaken -= 1 }
        if gaps?.remove(next.arrival - oldest.arrival) == false { gaps = nil }
        window.removeFirst()
    }

    /// Never of the newest packet.
    private func isOutside(_ oldest: Sample) -> Bool {
        let span = window[window.count - 1].arrival - oldest.arrival
        return window.count > Self.maximumPackets || span > Self.longest
            || (window.count > Self.packets && span > Self.shortest)
    }

    /// Nil until ten packets arrived.
    var rate: DataRate? {
        guard window.count >= Self.neededPackets else { return nil }
        return Self.rate(
            of: bytes, from: window[0], to: window[window.count - 1], gaps ?? gaps(from: 0), sent: sentRate)
    }

    /// Likewise, and remembers what it found.
    mutating func measured() -> DataRate? {
        if gaps == nil { gaps = gaps(from: 0) }
        return rate
    }

    /// The rate of the last quarter of a second, or of the last ten packets. While a queue of the path is not empty, it is
    /// the rate of the link, also if the link became slower just now, or if the application sent little before. While the
    /// queue drains, less is sent than arrives: then the rate of the last second is the most that is believed.
    var recentRate: DataRate? {
        guard let last = window.last else { return nil }
        var start = window.count
        while start > 0,
            window.count - start < Self.neededPackets || last.arrival - window[start - 1].arrival < Self.recent
        {
            start -= 1
        }
        guard window.count - start >= Self.neededPackets else { return nil }
        var (bytes, sent) = (0.0, Sent())
        for index in start..<window.count {
            bytes += window[index].bytes
            sent.add(window[index])
        }
        let credible = sent.rate.map { max($0, rate ?? .zero) }
        return Self.rate(of: bytes, from: window[start], to: last, gaps(from: start), sent: credible)
    }

    /// - Parameter sent: no more than this is believed
    private static func rate(
        of bytes: Double, from first: Sample, to last: Sample, _ gaps: Gaps, sent: DataRate?
    ) -> DataRate {
        // The first packet came at the beginning of the time, so it does not belong to it. The same for the last sent.
        let time = max(last.arrival - first.arrival - gaps.largest + gaps.second, .milliseconds(1))
        return min(DataRate(bytes: bytes - first.bytes, in: time), sent ?? .unlimited)
    }

    private func gaps(from start: Int) -> Gaps {
        var gaps = Gaps()
        for index in start + 1..<window.count { gaps.add(window[index].arrival - window[index - 1].arrival) }
        return gaps
    }

    /// How fast the packets of the window were sent. Nil for too few packets.
    private var sentRate: DataRate? {
        // Packets that were sent before one of the removed ones do not belong to the time of sending.
        let from = newestRemoved ?? .zero
        var sent = Sent()
        guard overtaken == 0, window[0].sent >= from else {
            for index in 0..<window.count where window[index].sent >= from { sent.add(window[index]) }
            return sent.rate
        }
        var last = window.count - 1
        while last > 0, window[last - 1].sent == window[last].sent { last -= 1 }
        return Sent(bytes, count: window.count, first: window[0].sent, last: window[last]).rate
    }

    /// Packets by when they were sent.
    private struct Sent {
        private var bytes = 0.0
        private var count = 0
        private var first = MonotonicTime.never
        private var last = MonotonicTime.zero
        private var lastBytes = 0.0

        init() {}

        init(_ bytes: Double, count: Int, first: MonotonicTime, last: Sample) {
            (self.bytes, self.count, self.first) = (bytes, count, first)
            (self.last, lastBytes) = (last.sent, last.bytes)
        }

        mutating func add(_ sample: Sample) {
            bytes += sample.bytes
            count += 1
            first = min(first, sample.sent)
            if sample.sent > last { (last, lastBytes) = (sample.sent, sample.bytes) }
        }

        /// Nil for too few packets.
        var rate: DataRate? {
            guard count >= AcknowledgedRate.neededPackets, last > .zero else { return nil }
            return DataRate(bytes: bytes - lastBytes, in: max(last - first, .milliseconds(1)))
        }
    }
}

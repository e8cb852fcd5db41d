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

    /// In the order of arrivals.
    private var window = Ring<Sample>(capacity: 64)
    private var newestRemoved: MonotonicTime?

    mutating func add(_ packet: PacketResult) {
        guard let arrival = packet.arrival else { return }
        window.append(Sample(sent: packet.sent, arrival: arrival, bytes: Double(packet.bytes)))
        var index = window.count - 1
        while index > 0, window[index].arrival < window[index - 1].arrival {
            let later = window[index - 1]
            window[index - 1] = window[index]
            window[index] = later
            index -= 1
        }
        if let last = window.last, last.arrival - arrival > Self.maximumReordering {
            self = AcknowledgedRate()
            return
        }
        while let oldest = window.first, isOutside(oldest) {
            newestRemoved = max(newestRemoved ?? oldest.sent, oldest.sent)
            window.removeFirst()
        }
    }

    private func isOutside(_ oldest: Sample) -> Bool {
        guard let last = window.last else { return false }
        let span = last.arrival - oldest.arrival
        return window.count > Self.maximumPackets || span > Self.longest
            || (window.count > Self.packets && span > Self.shortest)
    }

    /// Nil until ten packets arrived.
    var rate: DataRate? { rate(from: 0) }

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
        return rate(from: start, atLeast: rate)
    }

    /// - Parameter credible: so much is believed, although less was sent meanwhile
    private func rate(from start: Int, atLeast credible: DataRate? = nil) -> DataRate? {
        guard window.count - start >= Self.neededPackets else { return nil }
        let first = window[start]
        var (gap, secondGap) = (TimeInterval.zero, TimeInterval.zero)
        var arrived = 0.0
        var before = first.arrival
        var sent = Sent()
        // Packets that were sent before one of the removed ones do not belong to the time of sending.
        let from = start == 0 ? newestRemoved ?? .zero : .zero
        for index in start..<window.count {
            let sample = window[index]
            arrived += sample.bytes
            let since = sample.arrival - before
            before = sample.arrival
            if since > gap {
                (secondGap, gap) = (gap, since)
            } else if since > secondGap {
                secondGap = since
            }
            if sample.sent >= from { sent.add(sample) }
        }
        // The first packet came at the beginning of the time, so it does not belong to it. The same for the last sent.
        let arrivalTime = max(before - first.arrival - gap + secondGap, .milliseconds(1))
        let receiving = DataRate(bytes: arrived - first.bytes, in: arrivalTime)
        return min(receiving, max(sent.rate ?? .unlimited, credible ?? .zero))
    }

    /// Packets by when they were sent.
    private struct Sent {
        private var bytes = 0.0
        private var count = 0
        private var first = MonotonicTime.never
        private var last = MonotonicTime.zero
        private var lastBytes = 0.0

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

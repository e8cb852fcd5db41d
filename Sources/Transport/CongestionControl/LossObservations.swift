internal import RTP

/// Loss and sending rate of the last periods of at least 250 ms.
struct LossObservations: Sendable {
    static let count = 15
    static let shortest = TimeInterval.milliseconds(250)
    /// The weight of each observation relative to the next newer one.
    static let decay = 0.9
    /// A rate this much above the median sends so much suddenly that its loss has a cause.
    static let suddenRatio = 2.0

    struct Observation: Sendable, Equatable {
        /// Kilobytes.
        var sent: Double
        var lost: Double
        var rate: DataRate

        var lossRatio: Double { sent > 0 ? lost / sent : 0 }
    }

    /// The period that is not complete yet.
    private struct Period {
        var sent = 0.0
        var missing: [(number: Int, bytes: Int)] = []
    }

    /// The most packets that are missing in a period one by one. More of them count as lost in any case.
    private static let maximumMissing = 512

    /// The newest last.
    private var ring = Ring<Observation>(capacity: Self.count + 1)
    private var lossyCount = 0
    private var period = Period()
    private var lostForGood = 0.0
    /// How many there were in all.
    private(set) var total = 0
    /// When the newest packet of the last complete observation was sent.
    private(set) var newest: MonotonicTime?
    /// The weighted loss ratio without the best and the worst observation.
    private(set) var averageLoss = 0.0

    /// Adds the fates of packets. Returns true if they complete an observation.
    mutating func add(_ packets: [PacketResult]) -> Bool {
        guard let first = packets.first else { return false }
        var (earliest, latest) = (first.sent, first.sent)
        for packet in packets {
            note(packet)
            earliest = min(earliest, packet.sent)
            latest = max(latest, packet.sent)
        }
        let since = newest ?? earliest
        newest = since
        guard latest - since >= Self.shortest else { return false }
        let lost = lostForGood + Double(period.missing.reduce(0) { $0 + $1.bytes })
        ring.append(
            Observation(
                sent: period.sent / 1000, lost: lost / 1000, rate: DataRate(bytes: period.sent, in: latest - since)))
        if lost > 0 { lossyCount += 1 }
        if ring.count > Self.count, let oldest = ring.removeFirst(), oldest.lost > 0 { lossyCount -= 1 }
        total += 1
        newest = latest
        period.sent = 0
        period.missing.removeAll(keepingCapacity: true)
        lostForGood = 0
        averageLoss = average()
        return true
    }

    var hasLosses: Bool { lossyCount > 0 }

    /// Calls the closure for each observation, with its weight.
    @inline(__always)
    func forEach(_ body: (Observation, Double) -> Void) {
        var weight = 1.0
        for index in stride(from: ring.count - 1, through: 0, by: -1) {
            body(ring[index], weight)
            weight *= Self.decay
        }
    }

    private mutating func note(_ packet: PacketResult) {
        if packet.wasMissing {
            guard packet.arrival != nil else { return }
            period.missing.removeAll { $0.number == packet.number }
            return
        }
        period.sent += Double(packet.bytes)
        guard packet.arrival == nil else { return }
        if period.missing.count < Self.maximumMissing {
            period.missing.append((packet.number, packet.bytes))
        } else {
            lostForGood += Double(packet.bytes)
        }
    }

    private func average() -> Double {
        guard hasLosses else { return 0 }
        var (sent, lost) = (0.0, 0.0)
        var best = (ratio: 1.0, sent: 0.0, lost: 0.0)
        var worst = (ratio: 0.0, sent: 0.0, lost: 0.0, rate: DataRate.zero)
        forEach { observation, weight in
            sent += weight * observation.sent
            lost += weight * observation.lost
            guard total > 3 else { return }
            let ratio = observation.lossRatio
            if ratio > worst.ratio {
                worst = (ratio, weight * observation.sent, weight * observation.lost, observation.rate)
            }
            if ratio < best.ratio { best = (ratio, weight * observation.sent, weight * observation.lost) }
        }
        guard sent > 0 else { return 0 }
        let rest = sent - best.sent - worst.sent
        guard medianRate * Self.suddenRatio > worst.rate, rest > 1e-9 else { return lost / sent }
        return max(0, (lost - best.lost - worst.lost) / rest)
    }

    private var medianRate: DataRate {
        var rates: [DataRate] = []
        forEach { observation, _ in if observation.rate > .zero { rates.append(observation.rate) } }
        guard !rates.isEmpty else { return .zero }
        rates.sort()
        let middle = rates.count / 2
        return rates.count % 2 == 1 ? rates[middle] : (rates[middle - 1] + rates[middle]) * 0.5
    }
}

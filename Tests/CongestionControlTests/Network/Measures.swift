import CongestionControl

/// The values that bands judge. Times are in seconds, rates in kbit/s, delays in milliseconds.
extension CallSimulation {
    func target(at time: Double, flow: Int = 0) -> Double {
        records[flow].samples.last { $0.time <= time + 1e-6 }?.target ?? 0
    }

    func estimate(at time: Double, flow: Int = 0) -> Double {
        records[flow].samples.last { $0.time <= time + 1e-6 }?.estimate ?? 0
    }

    /// The targets at each full second, as libwebrtc's tests read them.
    private func targets(_ from: Double, _ to: Double, _ flow: Int) -> [Double] {
        stride(from: from, through: to, by: 1).map { target(at: $0, flow: flow) }
    }

    func lowest(_ from: Double, _ to: Double, flow: Int = 0) -> Double { targets(from, to, flow).min() ?? 0 }
    func highest(_ from: Double, _ to: Double, flow: Int = 0) -> Double { targets(from, to, flow).max() ?? 0 }

    func mean(_ from: Double, _ to: Double, flow: Int = 0) -> Double {
        let all = targets(from, to, flow)
        return all.isEmpty ? 0 : all.reduce(0, +) / Double(all.count)
    }

    /// The rate that arrived.
    func delivered(_ from: Double, _ to: Double, flow: Int = 0) -> Double {
        let bytes = records[flow].delivered.reduce(0.0) { $0 + ($1.at >= from && $1.at < to ? $1.bytes : 0) }
        return bytes / 125 / (to - from)
    }

    /// The share of the link that all flows used, of the part that they could use.
    /// - Parameters:
    ///   - most: the most that they could use, in kbit/s
    ///   - backward: the other direction
    func use(_ from: Double, _ to: Double, most: Double = .infinity, backward: Bool = false) -> Double {
        let flows = records.indices.filter { isBackward($0) == backward }
        let bytes = flows.reduce(0.0) { $0 + delivered(from, to, flow: $1) } * 125 * (to - from)
        return bytes / max(1, (backward ? back : forward).capacity(from: from, to: to, most: most))
    }

    /// A percentile of the time that packets waited in the bottleneck's queue.
    func queue(_ percentile: Double, _ from: Double, _ to: Double, backward: Bool = false) -> Double {
        let waits = (backward ? back : forward).waits.filter { $0.at >= from && $0.at < to }.map(\.milliseconds)
            .sorted()
        return waits.isEmpty ? 0 : waits[min(waits.count - 1, Int(Double(waits.count) * percentile))]
    }

    /// Jain's index of fairness: 1 if all flows get the same.
    func fairness(_ from: Double, _ to: Double) -> Double {
        let rates = records.indices.map { delivered(from, to, flow: $0) }
        let sum = rates.reduce(0, +)
        return sum * sum / (Double(rates.count) * rates.reduce(0) { $0 + $1 * $1 })
    }

    /// The rate at which TCP connections delivered.
    func deliveredByTCP(_ from: Double, _ to: Double) -> Double {
        let bytes = connections.flatMap(\.delivered).reduce(0.0) { $0 + ($1.at >= from && $1.at < to ? $1.bytes : 0) }
        return bytes / 125 / (to - from)
    }

    /// A percentile of the seconds that a file took.
    func transferTime(_ percentile: Double) -> Double {
        let times = connections.flatMap(\.finished).map(\.seconds).sorted()
        return times.isEmpty ? 0 : times[min(times.count - 1, Int(Double(times.count) * percentile))]
    }

    /// The longest time without an arrival.
    func longestSilence(_ from: Double, _ to: Double, flow: Int = 0) -> Double {
        var (before, longest) = (from, 0.0)
        for (at, _) in records[flow].delivered where at >= from && at < to {
            longest = max(longest, at - before)
            before = at
        }
        return longest
    }

    /// How often nothing arrived for 250 ms.
    func freezes(_ from: Double, _ to: Double, flow: Int = 0) -> Double {
        var (before, count) = (from, 0.0)
        for (at, _) in records[flow].delivered where at >= from && at < to {
            if at - before > 0.25 { count += 1 }
            before = at
        }
        return count
    }

    /// How many packets of a kind the first flow sent.
    func sent(_ kind: PacketKind, _ from: Double, _ to: Double) -> Double {
        Double(records[0].sendTimes.reduce(0) { $0 + ($1.kind == kind && $1.at >= from && $1.at < to ? 1 : 0) })
    }
}

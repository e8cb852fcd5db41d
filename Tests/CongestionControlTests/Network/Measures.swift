import CongestionControl

/// The values that bands judge. Times are in seconds, rates in kbit/s, delays in milliseconds.
extension CallSimulation {
    func target(at time: Double, flow: Int = 0) -> Double {
        records[flow].samples.last { $0.time <= time + 1e-6 }?.target ?? 0
    }

    /// Only audio is sent.
    func isPaused(at time: Double, flow: Int = 0) -> Bool {
        records[flow].samples.last { $0.time <= time + 1e-6 }?.isPaused ?? false
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

    /// The share of the link that all flows used, of the part that they could use. Everything that arrived counts: audio,
    /// video, probes and padding.
    /// - Parameters:
    ///   - most: the most that they could use, in kbit/s
    ///   - backward: the other direction
    func use(_ from: Double, _ to: Double, most: Double = .infinity, backward: Bool = false) -> Double {
        let flows = records.indices.filter { isBackward($0) == backward }
        let bytes = flows.reduce(0.0) { $0 + delivered(from, to, flow: $1) } * 125 * (to - from)
        return bytes / max(1, (backward ? back : forward).capacity(from: from, to: to, most: most))
    }

    /// How much of the bytes that arrived was padding, which probes have if media is too little for them.
    func paddingShare(_ from: Double, _ to: Double, flow: Int = 0) -> Double {
        let padding = records[flow].paddingDelivered.reduce(0.0) { $0 + ($1.at >= from && $1.at < to ? $1.bytes : 0) }
        return padding / max(1, delivered(from, to, flow: flow) * 125 * (to - from))
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

    /// The seconds of each freeze of the video, by the rule of W3C's `freezeCount`: a frame is complete later than usual after
    /// the one before, by the mean time between the last 30 frames. Later than usual is three times that, and at least 150 ms
    /// more. A freeze that lasts at the end counts too.
    func freezes(_ from: Double, _ to: Double, flow: Int = 0) -> [Double] {
        let frames = records[flow].framesComplete.filter { $0 >= from && $0 < to }
        var freezes: [Double] = []
        for (index, (before, at)) in zip(frames, frames.dropFirst() + [to]).enumerated() where index > 0 {
            let first = max(0, index - 30)
            let usual = (before - frames[first]) / Double(index - first)
            if at - before > max(3 * usual, usual + 0.15) { freezes.append(at - before) }
        }
        return freezes
    }

    /// How many packets of a kind the first flow sent.
    func sent(_ kind: PacketKind, _ from: Double, _ to: Double) -> Double {
        Double(records[0].sendTimes.reduce(0) { $0 + ($1.kind == kind && $1.at >= from && $1.at < to ? 1 : 0) })
    }
}

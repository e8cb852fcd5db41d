import RTP
import TestSupport

/// A bottleneck in one direction: a rate that changes, a queue that drops its newest packet, a delay, jitter and loss.
struct SimulatedLink {
    struct Settings {
        /// kbit/s from the first time on, and further ones, in ascending order of seconds. 0 carries nothing.
        var rates: [(from: Double, kilobits: Double)]
        /// Milliseconds in one direction.
        var delay: Double
        /// The longest queue, in milliseconds at the current rate, or at the last one before a stop. At least ten packets.
        var queue = 2000.0
        /// The longest queue in packets.
        var queuePackets = Int.max
        var loss = Loss.none
        /// The standard deviation of the delay in milliseconds, cut off at three of them, without reordering (RFC 8868,
        /// section 4.5.3).
        var jitter = 0.0
        /// The share of packets that arrive so many milliseconds later. Others overtake them.
        var late: (share: Double, milliseconds: Double)?
        /// A token bucket that drops whatever exceeds its rate and size.
        var policer: (kilobits: Double, bytes: Double)?

        init(_ kilobits: Double, delay: Double) {
            rates = [(0, kilobits)]
            self.delay = delay
        }

        init(rates: [(from: Double, kilobits: Double)], delay: Double) {
            self.rates = rates
            self.delay = delay
        }
    }

    enum Loss {
        case none
        case independent(Double)
        /// Bursts of this mean length in packets, and the share of lost packets.
        case bursts(Double, length: Double)
    }

    var settings: Settings
    /// How long each packet waited before its transmission began, with the time at which it was sent.
    private(set) var waits: [(at: Double, milliseconds: Double)] = []
    private(set) var dropped = 0
    private var random: Seeded
    private var busyUntil = 0.0
    private var queued: [(departs: Double, bytes: Double)] = []
    private var head = 0
    private var queuedBytes = 0.0
    private var isInBurst = false
    private var lastArrival = 0.0
    private var tokens = (bytes: 0.0, at: -1.0)
    private var step = 0
    /// The last rate at which it carried packets. A link that stops keeps its queue.
    private var carried = 0.0

    init(_ settings: Settings, seed: UInt64) {
        self.settings = settings
        random = Seeded(seed)
    }

    /// kbit/s
    func rate(at time: Double) -> Double { settings.rates.last { $0.from <= time }?.kilobits ?? 0 }

    /// Bytes that the link can carry from one time to another, at `most` kbit/s.
    func capacity(from start: Double, to end: Double, most: Double) -> Double {
        var sum = 0.0
        for (index, piece) in settings.rates.enumerated() {
            let next = index + 1 < settings.rates.count ? settings.rates[index + 1].from : .infinity
            let overlap = min(end, next) - max(start, piece.from)
            if overlap > 0 { sum += overlap * min(piece.kilobits, most) * 125 }
        }
        return sum
    }

    mutating func reseed(_ seed: UInt64) { random = Seeded(seed) }

    mutating func forgetQueue() {
        (busyUntil, queuedBytes, head) = (0, 0, 0)
        queued = []
    }

    /// When the packet arrives. Nil if it is lost. Times are in seconds and do not decrease.
    mutating func send(bytes: Double, at time: Double) -> Double? {
        while head < queued.count, queued[head].departs <= time {
            queuedBytes -= queued[head].bytes
            head += 1
        }
        if head > 4096 {
            queued.removeFirst(head)
            head = 0
        }
        while step + 1 < settings.rates.count, settings.rates[step + 1].from <= time { step += 1 }
        if settings.rates[step].kilobits > 0 { carried = settings.rates[step].kilobits }
        let limit = max(15_000, carried * 125 * settings.queue / 1000)
        guard queuedBytes + bytes <= limit, queued.count - head < settings.queuePackets, isWithinPolicy(bytes, time)
        else {
            dropped += 1
            return nil
        }
        let begins = max(time, busyUntil)
        waits.append((time, (begins - time) * 1000))
        busyUntil = departure(of: bytes, from: begins)
        queued.append((busyUntil, bytes))
        queuedBytes += bytes
        guard !isLost() else { return nil }
        lastArrival = max(lastArrival, busyUntil + (settings.delay + jitter()) / 1000)
        return lastArrival + lateness() / 1000
    }

    private func departure(of bytes: Double, from begins: Double) -> Double {
        var left = bytes
        var now = begins
        var piece = step
        while true {
            while piece + 1 < settings.rates.count, settings.rates[piece + 1].from <= now { piece += 1 }
            let rate = settings.rates[piece].kilobits * 125
            let end = piece + 1 < settings.rates.count ? settings.rates[piece + 1].from : Double.infinity
            if rate > 0, now + left / rate <= end { return now + left / rate }
            // A link that never carries anything again keeps its packets.
            guard end.isFinite else { return 1e9 }
            left -= rate * (end - now)
            now = end
        }
    }

    private mutating func isWithinPolicy(_ bytes: Double, _ time: Double) -> Bool {
        guard let policer = settings.policer else { return true }
        if tokens.at < 0 { tokens = (policer.bytes, time) }
        tokens = (min(policer.bytes, tokens.bytes + (time - tokens.at) * policer.kilobits * 125), time)
        guard tokens.bytes >= bytes else { return false }
        tokens.bytes -= bytes
        return true
    }

    private mutating func isLost() -> Bool {
        switch settings.loss {
        case .none: return false
        case .independent(let share): return Double.random(in: 0..<1, using: &random) < share
        case .bursts(let share, let length):
            let leave = 1 / length
            let enter = share * leave / (1 - share)
            isInBurst = Double.random(in: 0..<1, using: &random) < (isInBurst ? 1 - leave : enter)
            return isInBurst
        }
    }

    private mutating func lateness() -> Double {
        guard let late = settings.late, Double.random(in: 0..<1, using: &random) < late.share else { return 0 }
        return late.milliseconds
    }

    private mutating func jitter() -> Double {
        guard settings.jitter > 0 else { return 0 }
        // The sum of twelve uniform numbers is nearly normal.
        let sum = (0..<12).reduce(-6.0) { sum, _ in sum + Double.random(in: 0..<1, using: &random) }
        return settings.jitter * (3 + min(max(sum, -3), 3))
    }
}

internal import RTP

/// One direction of a signalling connection: in order, nothing lost. While the link is cut, messages wait, and arrive some
/// time after its end, because TCP retries at growing intervals.
struct SignallingWire {
    private var lastArrival = MonotonicTime.zero
    private var random: RandomSource
    var delay: TimeInterval
    /// When the present cut began.
    var cutSince: MonotonicTime?
    private var held: [() -> Void] = []

    init(delay: TimeInterval, seed: UInt64) {
        self.delay = delay
        random = RandomSource(seed: seed)
    }

    /// When a message arrives that is sent now. Nil while the link is cut; `hold` keeps the message then.
    mutating func arrival(now: MonotonicTime) -> MonotonicTime? {
        guard cutSince == nil else { return nil }
        let slack = Int64.random(in: 0...max(1, delay.nanoseconds / 4), using: &random)
        lastArrival = max(lastArrival, now + delay + TimeInterval(nanoseconds: slack))
        return lastArrival
    }

    /// Another connection begins. The former one's messages are lost, as far as they wait.
    mutating func beginAnew() {
        held = []
        lastArrival = .zero
    }

    mutating func hold(_ delivery: @escaping () -> Void) { held.append(delivery) }

    /// The messages that waited for the end of the cut, and the time at which TCP tries again.
    mutating func resume(now: MonotonicTime) -> (time: MonotonicTime, deliveries: [() -> Void]) {
        let cut = cutSince.map { now - $0 } ?? .zero
        cutSince = nil
        // The pauses double from 200 ms, so the next try comes up to as long again after the cut as it lasted.
        var pause = TimeInterval.milliseconds(200)
        var tried = TimeInterval.zero
        while tried < cut {
            tried = tried + pause
            pause = min(pause * 2, .seconds(120))
        }
        lastArrival = max(lastArrival, now + (tried - cut) + delay)
        defer { held = [] }
        return (lastArrival, held)
    }
}

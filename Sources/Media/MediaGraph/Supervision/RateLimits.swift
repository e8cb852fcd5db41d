/// A rate limit: up to `burst` together, then the stated rate per second. Receives the time.
package struct RateLimit: Sendable {
    private let perSecond: Double
    private let burst: Double
    private var credit: Double
    private var last: UInt64

    package init(perSecond: Double, burst: Double, now: UInt64) {
        self.perSecond = perSecond
        self.burst = burst
        credit = burst
        last = now
    }

    /// Seconds until the next is allowed. 0 means now.
    package mutating func delay(now: UInt64) -> Double {
        if now > last {
            credit = min(burst, credit + Double(now - last) / 1e9 * perSecond)
            last = now
        }
        return credit >= 1 ? 0 : (1 - credit) / perSecond
    }

    /// Records one.
    package mutating func take() { credit -= 1 }
}

/// Limits messages to a readable number and counts the omitted ones. Receives the time.
package struct LogLimit: Sendable {
    private var rate: RateLimit
    private var leftOut = 0

    package init(perSecond: Double, burst: Double, now: UInt64) {
        rate = RateLimit(perSecond: perSecond, burst: burst, now: now)
    }

    /// The number of messages omitted before this one. Nil if this one is omitted.
    package mutating func admit(now: UInt64) -> Int? {
        guard rate.delay(now: now) <= 0 else {
            leftOut += 1
            return nil
        }
        rate.take()
        defer { leftOut = 0 }
        return leftOut
    }
}

/// The pause before a failed thing is tried again: doubles each time up to a limit, and varies so that things that failed
/// together are not tried together. Receives how long it worked, and a random number.
package struct Backoff: Sendable {
    /// Whatever worked for this many seconds counts as working.
    package static let goodRun = 10.0

    private let first: Double
    private let longest: Double
    private let goodRun: Double
    private var next: Double

    /// In seconds.
    package init(first: Double = 0.25, longest: Double = 30, goodRun: Double = Backoff.goodRun) {
        (self.first, self.longest, self.goodRun, next) = (first, longest, goodRun, first)
    }

    /// Seconds to wait. `chance` is between 0 and 1 and varies the result by up to a quarter in each direction.
    package mutating func delay(afterRunning seconds: Double, chance: Double = 0.5) -> Double {
        if seconds >= goodRun { next = first }
        defer { next = min(next * 2, longest) }
        return next * (0.75 + chance / 2)
    }
}

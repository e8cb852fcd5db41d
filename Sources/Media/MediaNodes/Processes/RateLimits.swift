/// A rate limit: up to `burst` together, then the stated rate per second. Receives the time.
struct RateLimit: Sendable {
    private let perSecond: Double
    private let burst: Double
    private var credit: Double
    private var last: UInt64

    init(perSecond: Double, burst: Double, now: UInt64) {
        self.perSecond = perSecond
        self.burst = burst
        credit = burst
        last = now
    }

    /// Seconds until the next is allowed. 0 means now.
    mutating func delay(now: UInt64) -> Double {
        if now > last {
            credit = min(burst, credit + Double(now - last) / 1e9 * perSecond)
            last = now
        }
        return credit >= 1 ? 0 : (1 - credit) / perSecond
    }

    /// Records one.
    mutating func take() { credit -= 1 }
}

/// Limits messages to a readable number and counts the omitted ones. Receives the time.
struct LogLimit: Sendable {
    private var rate: RateLimit
    private var leftOut = 0

    init(perSecond: Double, burst: Double, now: UInt64) {
        rate = RateLimit(perSecond: perSecond, burst: burst, now: now)
    }

    /// The number of messages omitted before this one. Nil if this one is omitted.
    mutating func admit(now: UInt64) -> Int? {
        guard rate.delay(now: now) <= 0 else {
            leftOut += 1
            return nil
        }
        rate.take()
        defer { leftOut = 0 }
        return leftOut
    }
}

/// The back-off before a program is restarted: doubles each time up to a limit, and varies so that programs that ended
/// together do not restart together. Receives the program's run time and a random number.
struct Backoff: Sendable {
    private static let first = 0.25
    private static let longest = 30.0
    /// A program that ran for this many seconds counts as working.
    static let goodRun = 10.0

    private var next = Backoff.first

    /// Seconds to wait. `chance` is between 0 and 1 and varies the result by up to a quarter in each direction.
    mutating func delay(afterRunning seconds: Double, chance: Double) -> Double {
        if seconds >= Self.goodRun { next = Self.first }
        defer { next = min(next * 2, Self.longest) }
        return next * (0.75 + chance / 2)
    }
}

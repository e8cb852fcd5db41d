/// How often something may come: up to `burst` at once, and then as many a second as stated. Is told the time.
struct RateGuard: Sendable {
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

    /// Seconds until one more may come; 0 when it may come now.
    mutating func delay(now: UInt64) -> Double {
        if now > last {
            credit = min(burst, credit + Double(now - last) / 1e9 * perSecond)
            last = now
        }
        return credit >= 1 ? 0 : (1 - credit) / perSecond
    }

    /// One came.
    mutating func take() { credit -= 1 }
}

/// Passes on no more words than somebody could read, and knows how many were left out. Is told the time.
struct WordGuard: Sendable {
    private var rate: RateGuard
    private var leftOut = 0

    init(perSecond: Double, burst: Double, now: UInt64) {
        rate = RateGuard(perSecond: perSecond, burst: burst, now: now)
    }

    /// How many were left out before this one; nil where this one is to be left out.
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

/// How long to wait before a program that ended is started again: twice as long each time, up to a limit, and not just as
/// long as others that ended with it. Is told how long the program ran, and what chance says.
struct Backoff: Sendable {
    private static let first = 0.25
    private static let longest = 30.0
    /// Seconds that a program must have run to be taken for one that works.
    static let goodRun = 10.0

    private var next = Backoff.first

    /// Seconds to wait. `chance` is between 0 and 1; what is waited lies up to a quarter to either side.
    mutating func delay(afterRunning seconds: Double, chance: Double) -> Double {
        if seconds >= Self.goodRun { next = Self.first }
        defer { next = min(next * 2, Self.longest) }
        return next * (0.75 + chance / 2)
    }
}

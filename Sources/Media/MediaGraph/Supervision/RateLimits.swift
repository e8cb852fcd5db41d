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

/// Keeps frames to a rate by their times. A silence earns no credit: the frames after it come at the rate again. Receives
/// the times, in nanoseconds.
package struct FramePace: Sendable {
    /// Times are rounded to nanoseconds.
    private static let tolerance = 1000.0

    private let period: Double
    /// The frame from which the periods count, and how many have passed.
    private var first: UInt64?
    private var passed = 0.0

    package init(framesPerSecond: Double) { period = 1e9 / framesPerSecond }

    /// Whether a frame passes.
    package mutating func admits(_ time: UInt64) -> Bool {
        guard let first else {
            restart(at: time)
            return true
        }
        let late = Double(time) - Double(first) - passed * period
        // A frame that is a little late keeps the rhythm. After a silence, and if the times have run back, another begins.
        if abs(late) >= 2 * period {
            restart(at: time)
            return true
        }
        guard late >= -Self.tolerance else { return false }
        passed += 1
        return true
    }

    private mutating func restart(at time: UInt64) { (first, passed) = (time, 1) }
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

/// The pause before a failed thing is tried again, in seconds: doubles with each failure, up to a limit.
package struct Backoff: Sendable, Hashable {
    package var first: Double
    package var longest: Double

    package init(first: Double, longest: Double) { (self.first, self.longest) = (first, longest) }

    /// The pause after a failure with so many others before it in a row.
    package func pause(after failures: Int) -> Double { min(longest, first * Double(1 << min(failures, 20))) }
}

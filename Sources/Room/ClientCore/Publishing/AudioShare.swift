internal import CongestionControl
internal import RTP

/// Decides at which bitrate one audio is encoded, from the rate of the path that it may use.
///
/// The bitrate falls at once, because a pacer never holds audio: what the path does not carry becomes a queue. It rises one
/// step at a time, with a margin. The step from which it fell waits longer each time that it fails again soon. Without padding
/// and probes, as in a session of audio alone, only more audio shows that the path carries more.
///
/// A value that is told the time. Bitrates are bits of media per second, without headers.
struct AudioShare {
    /// Opus makes narrowband speech of 8 kbit/s (RFC 6716, section 2.1.1). Headers of the path need three times that.
    static let least = 8000
    /// A step, relative to the next one. A larger one would need more than the estimate exceeds the rate that arrives.
    private static let step = 0.75
    static let margin = 1.1
    /// How long there must be room for a step, and for the one from which the bitrate fell.
    private static let climb = TimeInterval.seconds(2)
    private static let patience = (first: TimeInterval.seconds(5), longest: TimeInterval.seconds(40))
    private static let relapse = TimeInterval.seconds(30)
    /// Falls that follow each other this soon are one: the estimate goes on falling until the queue is empty.
    private static let drain = TimeInterval.seconds(5)
    /// After an outage, the bitrate before it returns in steps of this time, for half a minute.
    private static let homecoming = TimeInterval.seconds(1)

    /// Nil at the wish.
    private var limit: Int?
    private var patience = Self.patience.first
    private var (raised, fell): (MonotonicTime?, MonotonicTime?)
    /// The bitrate that the path did not carry.
    private var failed: Int?
    /// Since when there has been room for the next step.
    private var surplus: MonotonicTime?
    /// When nothing could be sent last, and the bitrate before.
    private var blocked: (at: MonotonicTime, before: Int)?

    /// The bitrate from now on.
    ///
    /// - Parameters:
    ///   - room: the rate of the path for this audio. 0 while nothing can be sent.
    ///   - wish: the bitrate without a limit
    mutating func bitrate(within room: Double, wish: Int, now: MonotonicTime) -> Int {
        let present = min(limit ?? wish, wish)
        if let blocked, now - blocked.at >= Self.relapse { self.blocked = nil }
        guard room > 0 else {
            (blocked, surplus) = ((now, max(present, blocked?.before ?? 0)), nil)
            return present
        }
        let steps = Self.steps(of: wish)
        guard present <= steps[0] || Self.fits(present, room) else {
            noteFailure(of: present, now: now)
            let next = steps.last { Self.fits($0, room) } ?? steps[0]
            (limit, surplus) = (next, nil)
            return next
        }
        guard let next = next(after: present, of: steps, within: room) else {
            surplus = nil
            return present
        }
        let since = surplus ?? now
        surplus = since
        let isReturn = blocked.map { next <= $0.before } ?? false
        let hasFailed = failed.map { next >= $0 } ?? false
        guard now - since >= (hasFailed ? patience : isReturn ? Self.homecoming : Self.climb) else { return present }
        if hasFailed { (failed, raised) = (nil, now) }
        (limit, surplus) = (next < wish ? next : nil, nil)
        return next
    }

    private mutating func noteFailure(of bitrate: Int, now: MonotonicTime) {
        // The estimate begins again with half after an outage, which says nothing about the path.
        if let blocked, now - blocked.at < Self.drain { return }
        blocked = nil
        defer { fell = now }
        if let fell, now - fell < Self.drain { return }
        let isRelapse = raised.map { now - $0 < Self.relapse } ?? false
        patience = isRelapse ? min(patience * 2, Self.patience.longest) : Self.patience.first
        failed = bitrate
    }

    /// The bitrate to rise to. The path carried the one before an outage, so up to that, the best one that fits is next.
    private func next(after present: Int, of steps: [Int], within room: Double) -> Int? {
        if let before = blocked?.before, before > present {
            return steps.last { $0 > present && $0 <= before && Self.fits($0, room) }
        }
        return steps.first { $0 > present }.flatMap { Self.fits($0, room, margin: Self.margin) ? $0 : nil }
    }

    private static func fits(_ bitrate: Int, _ room: Double, margin: Double = 1) -> Bool {
        PathRate.ofAudio(Double(bitrate)) * margin <= room
    }

    /// From the least bitrate to the wish.
    private static func steps(of wish: Int) -> [Int] {
        var steps = [wish]
        while steps[0] > least { steps.insert(max(least, Int(Double(steps[0]) * step)), at: 0) }
        return steps
    }
}

import RTP

/// The times that this end reported last, for the round trip to an end that replies how long it has kept one.
struct SentReports {
    private static let remembered = 8
    /// Longer ones span a stall of a machine, and no call survives them.
    private static let longest = TimeInterval.seconds(3)
    /// The delay is rounded, which can make the round trip negative by 15 µs.
    private static let rounding = TimeInterval.milliseconds(1)

    private var reports: [(compact: UInt32, at: MonotonicTime)] = []

    /// A report with this time leaves.
    mutating func sent(_ time: NTPTime, at now: MonotonicTime) {
        if reports.count == Self.remembered { reports.removeFirst() }
        reports.append((time.compact, now))
    }

    /// The round trip by a reply. Nil if no remembered report had this time, or if it is impossible: the clock of a machine
    /// that is suspended stands still, and the other end's goes on.
    ///
    /// - Parameter delay: in 65536ths of a second.
    func roundTrip(last: UInt32, delay: UInt32, now: MonotonicTime) -> TimeInterval? {
        guard let report = report(last) else { return nil }
        let held = TimeInterval(nanoseconds: Int64(delay) * 1_000_000_000 / 65536)
        let roundTrip = now - report.at - held
        guard roundTrip >= .zero - Self.rounding, roundTrip <= Self.longest else { return nil }
        return max(.zero, roundTrip)
    }

    /// When the report with this time left. Nil if none is remembered.
    func sentAt(_ last: UInt32) -> MonotonicTime? { report(last)?.at }

    private func report(_ last: UInt32) -> (compact: UInt32, at: MonotonicTime)? {
        last == 0 ? nil : reports.last { $0.compact == last }
    }
}

/// The extended reports of a session (RFC 3611, sections 4.4 and 4.5). With them, also an end that only receives measures
/// the round trip.
struct ReferenceTimes {
    /// A second session with the same peer begins at another time, so that nobody learns how long this machine has run.
    private var began: MonotonicTime?
    private var sent = SentReports()
    /// When the newest report left to which the peer has replied. `.zero` before the first reply.
    private(set) var answered = MonotonicTime.zero
    private var received: (ssrc: SSRC, compact: UInt32, at: MonotonicTime)?

    /// The next report. Nil if there is nothing to ask or to reply.
    mutating func report(from ssrc: SSRC, asks: Bool, now: MonotonicTime) -> ExtendedReport? {
        var report = ExtendedReport(ssrc: ssrc)
        if asks {
            // Elapsed time is allowed (section 4.4). 0 would mean that no report was received.
            let time = NTPTime(rawValue: 1 << 32).advanced(by: now - (began ?? now))
            began = began ?? now
            sent.sent(time, at: now)
            report.referenceTime = time
        }
        if let received {
            let elapsed = max(0, (now - received.at).nanoseconds)
            // The field overflows after 18 hours.
            let delay = elapsed / 1_000_000_000 * 65536 + elapsed % 1_000_000_000 * 65536 / 1_000_000_000
            report.replies = [
                .init(ssrc: received.ssrc, lastReference: received.compact, delay: UInt32(clamping: delay))
            ]
        }
        return report.referenceTime == nil && report.replies.isEmpty ? nil : report
    }

    mutating func forgetSent() { sent = SentReports() }

    /// Handles the peer's report. Returns the round trip if it replies to one of this end.
    mutating func receive(_ report: ExtendedReport, now: MonotonicTime) -> TimeInterval? {
        if let time = report.referenceTime { received = (report.ssrc, time.compact, now) }
        // The times of this end differ, whichever of its SSRCs a report had.
        for reply in report.replies {
            if let time = sent.sentAt(reply.lastReference) { answered = max(answered, time) }
            if let time = sent.roundTrip(last: reply.lastReference, delay: reply.delay, now: now) { return time }
        }
        return nil
    }
}

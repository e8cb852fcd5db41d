/// Tells how old the frames of a received stream are: since their capture, by the clock of the capturing machine.
public struct StreamClock: Sendable {
    /// The origin of a capture time.
    public enum Source: Sendable {
        /// The header extension.
        case captureTime
        /// A sender report.
        case senderReport
    }

    /// How the capturing clock is compared with the local one.
    public enum Comparison: Sendable {
        /// By the round trips of all ways between the two machines.
        case roundTrips
        /// By the round trip to the sender of the reports. Whether it knows the capturing clock as well is unknown.
        case nearRoundTrip
        /// By the wall clocks of both machines. Their difference is part of the age.
        case wallClocks
    }

    public struct Age: Sendable, Equatable {
        public var time: TimeInterval
        public var source: Source
        public var comparison: Comparison
    }

    /// A frame is shown after its capture and within a minute. Clocks that say otherwise are wrong.
    private static let possible = (.zero - error)...TimeInterval.seconds(60)
    /// By so much, the clocks of a frame that is shown at once may show a time before its capture.
    private static let error = TimeInterval.milliseconds(100)

    private let clockRate: UInt32
    private var captured: (time: AbsoluteCaptureTime, rtp: RTPTimestamp)?
    private var reported: (ntp: NTPTime, rtp: RTPTimestamp)?
    private var sender = RemoteClock()

    public init(clockRate: UInt32) { self.clockRate = clockRate }

    /// A packet carries its capture time. That of a late packet does not replace a newer one.
    public mutating func capture(_ time: AbsoluteCaptureTime, rtp: RTPTimestamp) {
        if let captured {
            let distance = rtp.interval(since: captured.rtp, clockRate: clockRate)
            if distance < .zero, distance >= .zero - AbsoluteCaptureTime.reach { return }
        }
        captured = (time, rtp)
    }

    /// A sender report arrived at `arrival`. `roundTrip` is that to the clock that the report shows, nil if it is unknown.
    public mutating func report(_ ntp: NTPTime, rtp: RTPTimestamp, arrival: MonotonicTime, roundTrip: TimeInterval?) {
        reported = (ntp, rtp)
        if let roundTrip { sender.add(ntp, arrival: arrival, roundTrip: roundTrip) }
    }

    /// The age of a frame. Nil before the first capture time or report, and if no clock tells a possible age.
    ///
    /// - Parameter wallClock: the local wall clock at a point of the monotonic clock.
    public func age(of rtp: RTPTimestamp, at now: MonotonicTime, wallClock: (MonotonicTime) -> NTPTime) -> Age? {
        Self.possible(ageByCapture(of: rtp, at: now, wallClock))
            ?? Self.possible(ageByReport(of: rtp, at: now, wallClock))
    }

    private static func possible(_ age: Age?) -> Age? {
        guard var age, possible.contains(age.time) else { return nil }
        age.time = max(.zero, age.time)
        return age
    }

    /// When a frame was captured, by the clock of the source that tells it. Nil before the first capture time or report.
    /// Times of two streams of one sender are comparable if they have the same source.
    public func captureTime(of rtp: RTPTimestamp) -> (time: NTPTime, source: Source)? {
        if let (time, first) = captured {
            let distance = rtp.interval(since: first, clockRate: clockRate)
            if max(distance, .zero - distance) <= AbsoluteCaptureTime.reach || reported == nil {
                return (time.timestamp.advanced(by: distance), .captureTime)
            }
        }
        return reported.map {
            ($0.ntp.advanced(by: rtp.interval(since: $0.rtp, clockRate: clockRate)), .senderReport)
        }
    }

    /// Nil too far from a capture time, if a report serves instead.
    private func ageByCapture(
        of rtp: RTPTimestamp, at now: MonotonicTime, _ wallClock: (MonotonicTime) -> NTPTime
    ) -> Age? {
        guard let (time, first) = captured else { return nil }
        let distance = rtp.interval(since: first, clockRate: clockRate)
        guard max(distance, .zero - distance) <= AbsoluteCaptureTime.reach || reported == nil else { return nil }
        let capture = time.timestamp.advanced(by: distance)
        guard let present = sender.time(at: now) else {
            // The wall clocks of two machines are set by the same time, so no offset between them is assumed.
            return Age(time: wallClock(now).interval(since: capture), source: .captureTime, comparison: .wallClocks)
        }
        let shown = present.advanced(by: TimeInterval(ntpUnits: time.clockOffset ?? 0))
        return Age(
            time: shown.interval(since: capture), source: .captureTime,
            comparison: time.clockOffset == nil ? .nearRoundTrip : .roundTrips)
    }

    private func ageByReport(
        of rtp: RTPTimestamp, at now: MonotonicTime, _ wallClock: (MonotonicTime) -> NTPTime
    ) -> Age? {
        guard let reported else { return nil }
        let capture = reported.ntp.advanced(by: rtp.interval(since: reported.rtp, clockRate: clockRate))
        let present = sender.time(at: now)
        return Age(
            time: (present ?? wallClock(now)).interval(since: capture), source: .senderReport,
            comparison: present == nil ? .wallClocks : .nearRoundTrip)
    }
}

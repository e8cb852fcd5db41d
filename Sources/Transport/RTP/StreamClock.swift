/// Tells how old the frames of a received stream are: since their capture, by the clock of the capturing machine.
public struct StreamClock: Sendable {
    /// The origin of a capture time.
    public enum Source: Sendable {
        /// The header extension.
        case captureTime
        /// A sender report.
        case senderReport
    }

    public struct Age: Sendable, Equatable {
        public var time: TimeInterval
        public var source: Source
        /// Whether the capturing clock is known by round trips. Otherwise, it is compared with the local wall clock.
        public var isMeasured: Bool
    }

    /// How far a capture time is computed to other RTP timestamps.
    private static let reach = TimeInterval.seconds(5)

    private let clockRate: UInt32
    private var captured: (time: AbsoluteCaptureTime, rtp: RTPTimestamp)?
    private var reported: (ntp: NTPTime, rtp: RTPTimestamp)?
    private var sender = RemoteClock()

    public init(clockRate: UInt32) { self.clockRate = clockRate }

    /// A packet carries its capture time.
    public mutating func capture(_ time: AbsoluteCaptureTime, rtp: RTPTimestamp) { captured = (time, rtp) }

    /// A sender report arrived at `arrival`. `roundTrip` is that to the clock that the report shows, nil if it is unknown.
    public mutating func report(_ ntp: NTPTime, rtp: RTPTimestamp, arrival: MonotonicTime, roundTrip: TimeInterval?) {
        reported = (ntp, rtp)
        if let roundTrip { sender.add(ntp, arrival: arrival, roundTrip: roundTrip) }
    }

    /// The age of a frame. Nil before the first capture time or report.
    ///
    /// - Parameter wallClock: the local wall clock at a point of the monotonic clock.
    public func age(of rtp: RTPTimestamp, at now: MonotonicTime, wallClock: (MonotonicTime) -> NTPTime) -> Age? {
        guard let (time, offset, source) = capture(of: rtp) else { return nil }
        let present = sender.time(at: now)
        // The wall clocks of two machines are set by the same time, so no offset between them is assumed.
        let shown = present.map { $0.advanced(by: TimeInterval(ntpUnits: offset)) } ?? wallClock(now)
        return Age(time: shown.interval(since: time), source: source, isMeasured: present != nil)
    }

    private func capture(of rtp: RTPTimestamp) -> (NTPTime, clockOffset: Int64, Source)? {
        if let captured {
            let distance = rtp.interval(since: captured.rtp, clockRate: clockRate)
            if max(distance, .zero - distance) <= Self.reach || reported == nil {
                return (captured.time.timestamp.advanced(by: distance), captured.time.clockOffset ?? 0, .captureTime)
            }
        }
        guard let reported else { return nil }
        return (reported.ntp.advanced(by: rtp.interval(since: reported.rtp, clockRate: clockRate)), 0, .senderReport)
    }
}

internal import RTP

/// The times of a recording's packets: by their timestamps, so that pauses and gaps keep their lengths.
///
/// Where timestamps and arrivals disagree widely, as after a pause in which timestamps wrapped, arrivals decide. No publisher gets
/// far ahead of them.
struct RecordingTimes {
    /// Arrivals may be late by the path's delay and by repairs.
    static let tolerance = TimeInterval.seconds(10)
    /// Differences of timestamps wrap after six hours of video.
    private static let reach = TimeInterval.seconds(3600)

    private let clockRate: UInt32
    /// A packet's timestamp with its time.
    private var base: (timestamp: RTPTimestamp, time: TimeInterval)?
    private var last = (time: TimeInterval.zero, arrival: MonotonicTime.zero)
    /// When the first packet arrived.
    private(set) var begun: MonotonicTime?

    init(clockRate: UInt32) { self.clockRate = clockRate }

    /// The time of the next packet.
    mutating func time(of timestamp: RTPTimestamp, arrival: MonotonicTime) -> TimeInterval {
        guard let stamped = time(of: timestamp), let first = begun else {
            begun = arrival
            base = (timestamp, .zero)
            last = (.zero, arrival)
            return .zero
        }
        let passed = arrival - first
        // Clocks drift by 100 ppm at most.
        let latest = passed + passed / 1000 + Self.tolerance
        let expected = min(last.time + (arrival - last.arrival), latest)
        let difference = stamped - expected
        let agrees = max(difference, .zero - difference) <= Self.tolerance && stamped <= latest
        let time = agrees ? stamped : expected
        if !agrees || stamped - (base?.time ?? .zero) > Self.reach { base = (timestamp, time) }
        last = (max(time, last.time), arrival)
        return last.time
    }

    /// The time of a timestamp near those of the newest packets. Nil before the first one.
    func time(of timestamp: RTPTimestamp) -> TimeInterval? {
        base.map { $0.time + timestamp.interval(since: $0.timestamp, clockRate: clockRate) }
    }
}

/// A publisher's wall clock as its recordings use it: tied to the loop's clock once, so that the recordings of a participant
/// begin as far apart as their first packets were captured. It is tied again after a step.
final class CaptureClock {
    /// A report may be late by less.
    private static let step = TimeInterval.milliseconds(500)

    private var origin: (ntp: NTPTime, at: MonotonicTime)?

    /// When the publisher's clock shows this time, which is the present at `at`.
    func time(of ntp: NTPTime, at: MonotonicTime) -> MonotonicTime {
        if let origin {
            let known = origin.at + ntp.interval(since: origin.ntp)
            let difference = known - at
            if max(difference, .zero - difference) <= Self.step { return known }
        }
        origin = (ntp, at)
        return at
    }
}

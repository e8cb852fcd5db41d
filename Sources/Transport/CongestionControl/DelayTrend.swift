internal import RTP

/// How the delay of a path changes, as the slope of a line through the smoothed delays of the last groups, and whether
/// that means that a queue grows (draft-ietf-rmcat-gcc-02, section 5; the trendline filter of libwebrtc in place of its
/// Kalman filter).
struct DelayTrend: Sendable {
    enum Usage: Equatable {
        case normal
        /// A queue grows: more is sent than the link carries.
        case over
        /// A queue drains.
        case under
    }

    /// How many groups the line fits.
    static let window = 20
    static let smoothing = 0.9
    /// The slope is multiplied by this and by the number of groups, at most `maximumGroups`, to compare it with a
    /// threshold in milliseconds.
    static let gain = 4.0
    static let maximumGroups = 60
    static let initialThreshold = 12.5
    static let thresholds = 6.0...600
    /// How fast the threshold follows a slope above and below it, per millisecond.
    static let rise = 0.0087
    static let fall = 0.039
    /// A slope this much above the threshold does not move it: the link's rate dropped suddenly.
    static let maximumStep = 15.0
    static let longestStep = 100.0
    /// A queue must grow for this long in two groups or more, and not slower than before. In milliseconds.
    static let timeOver = 10.0

    private(set) var usage = Usage.normal
    private(set) var threshold = Self.initialThreshold
    private var groups = 0
    private var start: MonotonicTime?
    private var delay = 0.0
    private var smoothed = 0.0
    /// Arrivals and smoothed delays.
    private var points = Ring<SIMD2<Double>>(capacity: Self.window + 1)
    private var slope = 0.0
    private var overFor: Double?
    private var overGroups = 0
    private var adapted: MonotonicTime?

    mutating func add(_ delta: ArrivalGroups.Delta, arrival: MonotonicTime) {
        let first = start ?? arrival
        start = first
        groups = min(groups + 1, Self.maximumGroups)
        delay += delta.arrival.milliseconds - delta.sent.milliseconds
        smoothed = Self.smoothing * smoothed + (1 - Self.smoothing) * delay
        points.append(SIMD2((arrival - first).milliseconds, smoothed))
        if points.count > Self.window { points.removeFirst() }
        let before = slope
        if points.count == Self.window { slope = fittedSlope ?? slope }
        detect(before: before, sent: delta.sent.milliseconds)
        adaptThreshold(now: arrival)
    }

    /// The slope as the detector compares it.
    var indicator: Double { Double(groups) * slope * Self.gain }

    /// Least squares. Nil if all groups arrived at one time. Each single packet asks for it, as a group of its own.
    @inline(__always)
    private var fittedSlope: Double? {
        // From the first point, because the arrivals are far from zero.
        let (first, count) = (points[0], Double(points.count))
        var (sums, products) = (SIMD2<Double>.zero, SIMD2<Double>.zero)
        points.forEach { point in
            let distance = point - first
            sums += distance
            products += distance * distance.x
        }
        let moments = products - sums * sums.x / count
        return moments.x <= 0 ? nil : moments.y / moments.x
    }

    private mutating func detect(before: Double, sent: Double) {
        guard groups >= 2 else { return }
        if indicator > threshold {
            overFor = overFor.map { $0 + sent } ?? sent / 2
            overGroups += 1
            if let time = overFor, time > Self.timeOver, overGroups > 1, slope >= before {
                (overFor, overGroups) = (0, 0)
                usage = .over
            }
        } else {
            (overFor, overGroups) = (nil, 0)
            usage = indicator < -threshold ? .under : .normal
        }
    }

    private mutating func adaptThreshold(now: MonotonicTime) {
        guard groups >= 2 else { return }
        let size = abs(indicator)
        defer { adapted = now }
        guard size <= threshold + Self.maximumStep else { return }
        let elapsed = min((now - (adapted ?? now)).milliseconds, Self.longestStep)
        let moved = threshold + (size < threshold ? Self.fall : Self.rise) * (size - threshold) * elapsed
        threshold = min(max(moved, Self.thresholds.lowerBound), Self.thresholds.upperBound)
    }
}

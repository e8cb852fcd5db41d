import MediaAuthoring

extension ConformanceCheck {
    /// Times that are further off come from another clock.
    private static let longestDelay = 5.0

    static let timestamps = ConformanceCheck(
        "timestamps", "Capture times increase with every frame or buffer, on CLOCK_MONOTONIC."
    ) { examination in
        let watched = try await examination.watched()
        try watched.requireTimes()
        if let step = watched.units.stepBack { return .failed(step) }
        let lateness = watched.units.map(\.lateness)
        let least = lateness.min() ?? 0
        let most = lateness.max() ?? 0
        // The delay of a sound device is an estimate, and frames that arrive together after a stall get distinct times.
        guard least > -0.02 else {
            return .failed("it sends times \((-least * 1000).rounded(to: 1)) ms in the future")
        }
        guard most < longestDelay else {
            return .failed("it sends times that are \(most.rounded(to: 1)) s old, so they are from another clock")
        }
        return .passed("\(watched.units.count) in order, at most \((most * 1000).rounded(to: 1)) ms old")
    }

    static let clock = ConformanceCheck(
        "clock", "Capture times follow CLOCK_MONOTONIC, to 100 parts per million."
    ) { examination in
        var watched = try await examination.watched()
        try watched.requireTimes()
        if watched.units.allSatisfy(\.isOnTheClock) {
            return .passed("each time is the one that it waited for")
        }
        let limit = 100.0
        var drift = Drift(watched.units)
        var looks = 1
        // A busy machine needs a longer run. After a stall, which proves nothing about the capturer, the run is
        // repeated once.
        while looks == 1 && drift.uncertainty > limit / 2
            || looks < 4 && watched.stoodStill > 0 && drift.isOff(by: limit)
        {
            let seconds = max(8, examination.options.seconds)
            watched = try await examination.watch(for: try examination.span(of: Drift.fewest, orAtLeast: seconds))
            drift = Drift(watched.units)
            looks += 1
        }
        let words = "\(drift.perMillion.whole) parts per million, ± \(drift.uncertainty.whole)"
        if drift.isOff(by: limit) { return .failed("they drift by \(words)") }
        guard drift.uncertainty <= 10 * limit else {
            return .notApplicable("the machine is too busy to measure: \(words)")
        }
        return .passed("drift of \(words)")
    }

    static let pacing = ConformanceCheck(
        "pacing", "Frames arrive at the stated rate, and audio without gaps."
    ) { examination in
        let watched = try await examination.watched()
        try watched.requireTimes()
        let units = watched.units
        let span = units[units.count - 1].time.seconds(since: units[0].time)
        // The time in which frames could arrive: a device drops frames during a stall, and a source that draws may
        // catch up.
        let livelySpan = max(0.001, span - watched.stoodStill)
        if units.allSatisfy({ $0.duration != nil }) {
            let given = units.dropLast().compactMap(\.duration).reduce(0, +)
            let share = (given / max(span, 0.001) * 100).rounded(to: 1)
            let livelyShare = given / livelySpan * 100
            // draw() and fill() skip buffers that a busy machine missed, which is not the capturer's fault.
            let least = units.allSatisfy(\.isOnTheClock) ? 60.0 : 95.0
            return share <= 105 && livelyShare >= least
                ? .passed("\(share) % of the time is filled")
                : .failed("its buffers fill \(share) % of the time")
        }
        guard let stated = units[0].format.framesPerSecond ?? watched.stated?.framesPerSecond else {
            return .notApplicable("its format states no rate")
        }
        let steps = zip(units, units.dropFirst()).map { $1.time.seconds(since: $0.time) }.sorted()
        let usual = 1 / max(steps[steps.count / 2], 1e-6)
        let mean = Double(steps.count) / max(span, 1e-6)
        let words = "\(mean.rounded(to: 1)) frames/s on average, median \(usual.rounded(to: 1)), stated \(stated)"
        // A busy machine skips some frames; the others keep their distance.
        let livelyMean = Double(steps.count) / livelySpan
        return (0.9...1.1).contains(usual / stated) && mean / stated <= 1.1 && livelyMean / stated >= 0.6
            ? .passed(words) : .failed("it sends \(words)")
    }

    static let slowConsumer = ConformanceCheck(
        "slow-consumer", "It keeps its pace with a slow consumer: dropped frames are lost."
    ) { examination in
        let watched = try await examination.watched()
        if watched.isShort { return .notApplicable("it ended after \(watched.units.count)") }
        guard examination.stand.offers(.slow) else { return .notApplicable("the stand has no slow consumer") }
        if watched.keyframeLack != nil {
            return .notApplicable("it sends no keyframe to a fast consumer either; see formats")
        }
        let seconds = try examination.span(of: 4.5, orAtLeast: max(1.5, examination.options.seconds))
        let slowed = try await examination.watch(for: seconds, .slow)
        if let lack = slowed.lack { return .failed(lack) }
        // Frames kept for later get older and older.
        let third = max(1, slowed.units.count / 3)
        let first = slowed.units.prefix(third).map(\.lateness).min() ?? 0
        let last = slowed.units.suffix(third).map(\.lateness).min() ?? 0
        let growth = ((last - first) * 1000).whole
        guard growth < 100 else {
            return .failed("frames are \(growth) ms older at the end than at the beginning: it waits for the consumer")
        }
        let times = slowed.units.map(\.time)
        guard Set(times).count == times.count else { return .failed("it sends dropped frames again") }
        if let lack = slowed.keyframeLack {
            return .failed(
                "after a dropped frame, it sent no keyframe for \(lack.rounded(to: 1)) s; see takeKeyframeRequest()"
            )
        }
        return .passed("\(slowed.units.count { !$0.isTaken }) of \(slowed.units.count) were dropped, and it continued")
    }
}

/// The drift of capture times against the monotonic clock.
struct Drift {
    private(set) var perMillion = 0.0
    /// The number of frames needed to measure it.
    static let fewest = 21.0

    /// In both directions, with 95 % confidence.
    private(set) var uncertainty = Double.infinity

    /// Whether the drift certainly exceeds this many parts per million: with 99.9 % confidence (Student's t is 5.0 there),
    /// because a check that runs a hundred times a day must not fail by chance.
    func isOff(by limit: Double) -> Bool { abs(perMillion) - 2.2 * uncertainty > limit }

    /// Arrivals may be late because of the machine, never early. So the smallest delay in each of ten sections counts.
    init(_ units: [MediaUnit]) {
        let count = 10
        guard let first = units.first, let last = units.last, units.count >= 2 * count else { return }
        let span = last.time.seconds(since: first.time)
        guard span > 0 else { return }
        var least = [(time: Double, lateness: Double)?](repeating: nil, count: count)
        for unit in units {
            let time = unit.time.seconds(since: first.time)
            let index = min(count - 1, max(0, Int(time / span * Double(count))))
            if unit.lateness < least[index]?.lateness ?? .infinity { least[index] = (time, unit.lateness) }
        }
        let points = least.compactMap { $0 }
        guard points.count > 3 else { return }
        let number = Double(points.count)
        let meanTime = points.map(\.time).reduce(0, +) / number
        let meanLateness = points.map(\.lateness).reduce(0, +) / number
        let spread = points.map { ($0.time - meanTime) * ($0.time - meanTime) }.reduce(0, +)
        guard spread > 0 else { return }
        let slope = points.map { ($0.time - meanTime) * ($0.lateness - meanLateness) }.reduce(0, +) / spread
        let remainder = points.map { point in
            let off = point.lateness - meanLateness - slope * (point.time - meanTime)
            return off * off
        }
        // Slow times fall behind, so delays grow. 2.3 is Student's t for eight degrees of freedom.
        perMillion = -slope * 1e6
        uncertainty = 2.3 * (remainder.reduce(0, +) / (number - 2) / spread).squareRoot() * 1e6
    }
}

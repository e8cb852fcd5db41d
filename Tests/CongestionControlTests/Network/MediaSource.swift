import TestSupport

/// An encoder that follows a target: 30 frames a second of random size, the first one four times as large.
struct VideoSource {
    /// kbit/s
    var maximum = 5000.0
    var framesPerSecond = 30.0
    /// Frames are this share larger or smaller at most.
    var noise = 0.25
    /// For screens: a change each so many seconds, and almost nothing between.
    var changeInterval: Double?
    /// For films: the seconds between scenes, whose first frames are so many times as large.
    var scenes: (interval: Double, factor: Double)?
    /// Whether frames are skipped once it has exceeded its rate by half a second, and its rate rises half a second late.
    var skipsFrames = false
    private var excess = 0.0
    private var limit = (rate: 0.0, since: -1.0)
    /// The bytes by which frames exceeded their target, to be made up for.
    private var debt = 0.0
    private var frames = 0
    /// The bytes of skipped frames.
    private var saved = 0.0

    init() {}

    init(maximum: Double) { self.maximum = maximum }

    init(screenChangesEvery interval: Double) { changeInterval = interval }

    /// The bytes of the next frame, with the headers of its packets. 0 for a frame that is skipped, because the target is
    /// too low for it.
    /// - Parameter target: kbit/s for video alone
    mutating func frame(target: Double, random: inout Seeded) -> Double {
        defer { frames += 1 }
        let rate = limited(min(max(target, 0), maximum))
        guard !skipsFrames || excess <= rate * 125 * 0.5 else { return 0 }
        let average = rate * 125 / framesPerSecond
        guard average + saved >= 250 else {
            saved += average
            return 0
        }
        defer { saved = 0 }
        if let changeInterval {
            // A large frame, a second of refinement, and hardly anything until the next change.
            let place = frames % Int(changeInterval * framesPerSecond)
            return place == 0 ? average * 4 : place < 30 ? average : 200
        }
        let begins = scenes.map { frames % Int($0.interval * framesPerSecond) == 0 } ?? false
        let size =
            frames == 0
            ? average * 4
            : (average + saved) * (begins ? scenes?.factor ?? 1 : 1 + Double.random(in: -noise...noise, using: &random))
        // Encoders make up for a large frame within half a second.
        let paid = min(debt / 15, size * 0.5)
        debt += size - average - saved - paid
        debt = max(0, debt)
        let bytes = max(200, size - paid)
        excess += bytes
        return bytes
    }

    private mutating func limited(_ rate: Double) -> Double {
        guard skipsFrames else { return rate }
        let now = Double(frames) / framesPerSecond
        if rate < limit.rate || now - limit.since >= 0.5 { limit = (rate, now) }
        let second = limit.rate * 125
        excess = max(0, min(excess, second * 1.125) - second * 1.25 / framesPerSecond)
        return limit.rate
    }
}

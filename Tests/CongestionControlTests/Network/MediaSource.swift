import TestSupport

/// An encoder that follows a target: 30 frames a second of random size, the first one five times as large.
struct VideoSource {
    /// kbit/s
    var maximum = 5000.0
    var minimum = 30.0
    var framesPerSecond = 30.0
    /// Frames are this share larger or smaller at most.
    var noise = 0.25
    /// For screens: a change each so many seconds, and almost nothing between.
    var changeInterval: Double?
    /// The bytes by which frames exceeded their target, to be made up for.
    private var debt = 0.0
    private var frames = 0

    init() {}

    init(maximum: Double) { self.maximum = maximum }

    init(screenChangesEvery interval: Double) { changeInterval = interval }

    /// The bytes of the next frame.
    /// - Parameter target: kbit/s for video alone
    mutating func frame(target: Double, random: inout Seeded) -> Double {
        defer { frames += 1 }
        let rate = min(max(target, minimum), maximum)
        let average = rate * 125 / framesPerSecond
        if let changeInterval {
            let isChange = frames % Int(changeInterval * framesPerSecond) == 0
            return isChange ? min(100_000, average * 30) : 200
        }
        let size = frames == 0 ? average * 5 : average * (1 + Double.random(in: -noise...noise, using: &random))
        // Encoders make up for a large frame within half a second.
        let paid = min(debt / 15, size * 0.5)
        debt += size - average - paid
        debt = max(0, debt)
        return max(100, size - paid)
    }
}

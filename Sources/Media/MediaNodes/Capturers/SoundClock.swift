/// Stamps sound with the time at which it was captured, where GStreamer does not.
///
/// GStreamer stamps the first sound with the moment at which it was read, and after a stall it takes for lost what the
/// sound system had kept. What was kept then comes at once, and everything is stamped as much too late for ever; it would
/// be out of step with pictures. But no sound comes before it has ended: where all of half a second does, its stamps are
/// wrong. Where stamps leap, sound goes on without a gap until half a second has shown whether one is missing.
///
/// Times never go back: sound whose time is taken already is left out.
struct SoundClock {
    /// Stamps that are no further from where the last sound ended go on from there.
    private static let leap = 5_000_000
    /// Leaps that are longer are believed at once: no sound system keeps so much.
    private static let longestLeap = 1_000_000_000
    /// Differences that are no more are left: each change is heard by who mixes or encodes.
    private static let tolerance = 10_000_000
    /// How much sound is judged together.
    private static let span = 500_000_000

    /// What is taken off, in nanoseconds.
    private var lead = 0
    /// Where the last sound ended by its own stamp, and by the time that it was given.
    private var end: (stamped: Int, given: Int)?
    /// By how much the latest and the earliest of this span came before their end, and how long the span is by now.
    private var least = Int.max
    private var most = Int.min
    private var judged = 0
    /// Whether stamps have leapt in this span.
    private var hasLeapt = false

    /// The time of a piece of sound; nil where it is to be left out. All in nanoseconds of the pipeline's time.
    mutating func time(ofSoundAt stamp: Int, lasting duration: Int, now: Int) -> Int? {
        if let end, abs(stamp - end.stamped) > Self.leap {
            let leap = stamp - end.stamped
            lead = abs(leap) <= Self.longestLeap ? lead + leap : 0
            beginSpan(hasLeapt: true)
        }
        least = min(least, stamp + duration - now)
        most = max(most, stamp + duration - now)
        judged += duration
        if judged >= Self.span {
            if least > lead + Self.tolerance {
                lead = max(0, least)
            } else if hasLeapt, max(0, most) < lead - Self.tolerance {
                lead = max(0, most)
            }
            beginSpan(hasLeapt: false)
        }
        let time = stamp - lead
        let isTaken = end.map { time >= $0.given - Self.leap } ?? true
        end = (stamp + duration, isTaken ? time + duration : end?.given ?? 0)
        return isTaken ? time : nil
    }

    private mutating func beginSpan(hasLeapt: Bool) {
        (least, most, judged, self.hasLeapt) = (Int.max, Int.min, 0, hasLeapt)
    }
}

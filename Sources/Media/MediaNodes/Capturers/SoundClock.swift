/// Sets sound that is stamped ahead of its time right.
///
/// GStreamer stamps the first sound with the moment at which it was read. What the sound system had kept till then, on a
/// machine that was busy, then comes at once, and everything is stamped as much too late for ever; it would be out of step
/// with pictures. But no sound comes before it has ended: where all of half a second does, its stamps are wrong.
struct SoundClock {
    /// Stamps that are further from where the last sound ended begin anew: GStreamer has set them right itself.
    private static let jump = 5_000_000
    /// Differences that are no more are left: each change is heard by who mixes or encodes.
    private static let tolerance = 10_000_000
    /// How much sound is judged together.
    private static let span = 500_000_000

    /// What is taken off, in nanoseconds.
    private var lead = 0
    private var expected: Int?
    /// By how much the latest of this span came before its end, and how long the span is by now.
    private var least = Int.max
    private var judged = 0

    /// What to take off a stamp; all in nanoseconds of the pipeline's time.
    mutating func correction(forSoundAt stamp: Int, lasting duration: Int, now: Int) -> Int {
        if let expected, abs(stamp - expected) > Self.jump {
            (lead, least, judged) = (0, Int.max, 0)
        }
        expected = stamp + duration
        least = min(least, stamp + duration - now)
        judged += duration
        if judged >= Self.span {
            if least > lead + Self.tolerance { lead = least }
            (least, judged) = (Int.max, 0)
        }
        return lead
    }
}

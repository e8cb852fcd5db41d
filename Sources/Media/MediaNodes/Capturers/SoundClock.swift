/// Corrects the capture times of audio if GStreamer's are wrong.
///
/// GStreamer stamps the first audio with the time at which it was read. After a stall, it takes audio that the sound
/// system kept for lost. The kept audio then arrives in one burst, and all later timestamps are late by as much, out of
/// step with video. But audio cannot arrive before it has ended: if half a second of it does, its timestamps are wrong.
/// If timestamps jump, audio continues without a gap until half a second has shown whether some is missing.
///
/// Times never go back: audio for a time that is already used is dropped.
struct SoundClock {
    /// Timestamps this close to the end of the previous audio continue it.
    private static let leap = 5_000_000
    /// Longer jumps are accepted immediately, because no sound system keeps this much.
    private static let longestLeap = 1_000_000_000
    /// Smaller differences are not corrected, because mixers and encoders make each correction audible.
    private static let tolerance = 10_000_000
    /// How much audio is judged together.
    private static let span = 500_000_000
    /// After so many spans of audio that is later than the correction expects, the correction shrinks: GStreamer adjusts
    /// its timestamps in small steps too. A reader is not late for so long.
    private static let lateSpans = 4

    /// The correction, in nanoseconds.
    private var lead = 0
    /// The end of the previous audio, by its own timestamp and by its corrected one.
    private var end: (stamped: Int, given: Int)?
    /// How early the latest and the earliest buffer of this span arrived, and the span's length so far.
    private var least = Int.max
    private var most = Int.min
    private var judged = 0
    /// Whether timestamps have jumped in this span.
    private var hasLeapt = false
    /// Successive spans before this one in which all audio was later than the correction expects.
    private var late = 0

    /// The time of an audio buffer. Nil if it must be dropped. All in nanoseconds of the pipeline's time.
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
            }
            late = max(0, most) < lead - Self.tolerance ? late + 1 : 0
            if late >= (hasLeapt ? 1 : Self.lateSpans) {
                lead = max(0, most)
                late = 0
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

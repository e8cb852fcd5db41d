import MediaGraph
import TestFixtures

/// How a call with losses went. Repairs take some ten milliseconds each, and a machine that lets a thread wait for longer
/// says nothing about them: where a call is not as it should be, only what was not held up is judged.
struct RepairedCall {
    struct Judgement {
        /// Frames that were sent, and those of them that nobody saw.
        var frames = 0
        var missing = 0
        /// In milliseconds, between two pictures.
        var longestGap = 0.0

        var isGood: Bool { Double(missing) <= 0.005 * Double(frames) && longestGap <= 200 }
    }

    /// Seconds by which whoever is held up may miss a repair.
    private static let stall = 0.05
    /// Nanoseconds in which what a stall has held up may still be missing or late: the jitter buffer waits, pictures need
    /// the ones before, and the round trip that was measured meanwhile makes whoever asks again wait longer.
    private static let aftermath: UInt64 = 1_000_000_000

    let sights: [Watcher.Sight]
    let packetsLost: Int
    let judgement: Judgement

    /// `sent` are the RTP timestamps of all frames, in order.
    init(sent: [UInt32], sights: [Watcher.Sight], packetsLost: Int, stalls: [Starvation.Stretch]) {
        (self.sights, self.packetsLost) = (sights, packetsLost)
        let whole = Self.judge(sent, sights, [])
        judgement = whole.isGood ? whole : Self.judge(sent, sights, stalls.filter { $0.lost >= Self.stall })
    }

    private static func judge(_ sent: [UInt32], _ sights: [Watcher.Sight], _ stalls: [Starvation.Stretch]) -> Judgement
    {
        var judgement = Judgement()
        let places = Dictionary(sent.enumerated().map { ($1, $0) }) { first, _ in first }
        let seen = sights.compactMap { sight in
            sight.rtpTimestamp.flatMap { places[$0] }.map { (place: $0, time: sight.time) }
        }
        for (one, next) in zip(seen, seen.dropFirst()) {
            let isHeldUp = stalls.contains {
                $0.begin <= next.time.nanoseconds && one.time.nanoseconds <= $0.end + aftermath
            }
            if isHeldUp { continue }
            judgement.frames += next.place - one.place
            judgement.missing += next.place - one.place - 1
            judgement.longestGap = max(judgement.longestGap, next.time.milliseconds(since: one.time))
        }
        // Of those that came after the last that was seen.
        if let last = seen.last, stalls.allSatisfy({ $0.end + aftermath < last.time.nanoseconds }) {
            judgement.frames += sent.count - 1 - last.place
            judgement.missing += sent.count - 1 - last.place
        }
        return judgement
    }
}

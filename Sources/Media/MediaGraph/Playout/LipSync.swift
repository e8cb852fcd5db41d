/// How long to hold each track of one participant, so that sound and video are played as they were captured.
///
/// It is told, about twice a second, when each track plays the media that was captured at some time. The track that is
/// ahead gets a hold, and the latest one none. Only differences between the tracks count, so the clocks of the two
/// machines need not agree, and may drift apart. Without sound, no video is held, nor for a track that has had no new media
/// for two seconds. A track that begins again within that time, as after a switch, finds the others where they were.
///
/// Has no clock: the caller tells the times.
package struct LipSync: Sendable {
    /// Media that a track plays.
    package struct Playing: Sendable {
        /// When it was captured, by the sender's clock.
        package var captured: MediaTime
        /// When it is played, by the local clock.
        package var played: MediaTime
        /// The part of its delay that is a hold, in seconds.
        package var hold: Double
        /// Which of the sender's clocks told the capture. Only tracks of the same clock are compared.
        package var clock: Int
        /// The RTP timestamp of the frame, by which a repetition is known.
        package var frame: UInt32

        package init(captured: MediaTime, played: MediaTime, hold: Double, clock: Int = 0, frame: UInt32) {
            (self.captured, self.played, self.hold, self.clock) = (captured, played, hold, clock)
            self.frame = frame
        }
    }

    private struct Track {
        var isSound: Bool
        var clock: Int
        /// The latest ages of what it plays, without its hold, in seconds. The newest last.
        var ages: [Double] = []
        /// When it last had new media, and the frame.
        var toldAt: MediaTime
        var frame: UInt32?
        var hold = 0.0
        /// When there was something to be together with.
        var pairedAt: MediaTime?

        /// A late frame, or the first ones after a stall, seem older than the track is.
        var age: Double { ages.min() ?? 0 }
    }

    /// The longest hold, in seconds.
    package static let maximum = PlayoutDelay.maximum
    /// Nobody notices less, in seconds.
    private static let unnoticed = 0.015
    /// A track of which nothing was heard for so many seconds has stopped.
    private static let lifetime = 2.0
    private static let samples = 3
    /// Tracks whose ages differ by more seconds have clocks that count from different times.
    private static let plausible = 5.0

    private var tracks: [Int: Track] = [:]

    package init() {}

    /// Notes the media that a track plays, and returns how long to hold the track from now on, in seconds.
    package mutating func note(_ track: Int, isSound: Bool, _ playing: Playing, now: MediaTime) -> Double {
        var entry = tracks[track] ?? Track(isSound: isSound, clock: playing.clock, toldAt: now)
        if entry.clock != playing.clock || now.seconds(since: entry.toldAt) > Self.lifetime {
            entry.ages = []
            entry.clock = playing.clock
        }
        guard entry.frame != playing.frame else { return entry.hold }
        entry.toldAt = now
        entry.frame = playing.frame
        entry.ages.append(playing.played.seconds(since: playing.captured) - playing.hold)
        if entry.ages.count > Self.samples { entry.ages.removeFirst() }
        let others = tracks.filter {
            $0.key != track && $0.value.clock == entry.clock && now.seconds(since: $0.value.toldAt) <= Self.lifetime
                && abs($0.value.age - entry.age) <= Self.plausible
        }.map(\.value)
        if others.contains(where: { $0.isSound != isSound }) {
            entry.pairedAt = now
            let latest = others.map(\.age).max() ?? entry.age
            let wanted = min(max(latest - entry.age, 0), Self.maximum)
            if abs(wanted - entry.hold) > Self.unnoticed || wanted == 0 { entry.hold = wanted }
        } else if entry.pairedAt.map({ now.seconds(since: $0) > Self.lifetime }) ?? true {
            entry.hold = 0
        }
        tracks[track] = entry
        return entry.hold
    }

    /// A track has ended.
    package mutating func remove(_ track: Int) { tracks[track] = nil }

    package var isEmpty: Bool { tracks.isEmpty }
}

/// A hold that approaches its goal slowly, so that nobody sees it change. While everyone sees that sound and video are apart,
/// it is fast.
package struct SlewedHold: Sendable {
    /// Seconds per second: of 25 frames a second, two more or fewer.
    package static let rate = 0.08
    /// The same further from the goal than ITU-R BT.1359 allows sound to be ahead: half of the frames more or fewer.
    package static let fastRate = 0.5
    package static let noticed = 0.045

    /// In seconds.
    package private(set) var now = 0.0
    package var goal = 0.0
    private var last: MediaTime?

    package init() {}

    /// Moves towards the goal. The first call only notes the time.
    package mutating func advance(to time: MediaTime) {
        var elapsed = last.map { max(0, time.seconds(since: $0)) } ?? 0
        last = time
        let excess = abs(goal - now) - Self.noticed
        if excess > 0 {
            let step = min(excess, Self.fastRate * elapsed)
            move(by: step)
            elapsed -= step / Self.fastRate
        }
        move(by: Self.rate * elapsed)
    }

    private mutating func move(by most: Double) { now += min(max(goal - now, -most), most) }
}

import MediaGraph
import Testing

struct LipSyncTests {
    /// A participant with sound and video, on virtual time.
    private struct Participant {
        struct Track {
            var isSound: Bool
            /// Between capture and playout without a hold, in seconds. Nil while it plays nothing.
            var delay: Double?
            /// By how many seconds a second its delay grows, because its devices have clocks of their own.
            var drift = 0.0
            var hold = SlewedHold()
            /// A frame that is so many seconds later than the others.
            var isLate = 0.0
            /// The sender's clock that told the capture.
            var clock = 0
            /// By how many seconds that clock is ahead.
            var ahead = 0.0
            /// The last frame that it played, which a paused one repeats.
            var last: LipSync.Playing?
            var isPaused = false
        }

        var lipSync = LipSync()
        var sound = Track(isSound: true, delay: 0.15)
        var video = Track(isSound: false, delay: 0.02)
        /// By how much the sender's clock is faster than the local one.
        var drift = 0.0
        private(set) var now = 1000.0
        private var nextNote = 1000.0

        /// Returns by how much the video is later than its sound, in seconds, each 0.1 s.
        mutating func run(seconds: Double) -> [Double] {
            var differences: [Double] = []
            let end = now + seconds
            while now < end - 0.01 {
                if now >= nextNote - 0.01 {
                    if let goal = note(0, \.sound) { sound.hold.goal = goal }
                    if let goal = note(1, \.video) { video.hold.goal = goal }
                    nextNote += 0.5
                }
                for track in [\Participant.sound, \Participant.video] {
                    self[keyPath: track].hold.advance(to: time(now))
                    let growth = self[keyPath: track].drift * 0.1
                    self[keyPath: track].delay = self[keyPath: track].delay.map { $0 + growth }
                }
                if let heard = sound.delay, let seen = video.delay {
                    differences.append(seen + video.hold.now - heard - sound.hold.now)
                }
                now += 0.1
            }
            return differences
        }

        private mutating func note(_ number: Int, _ track: WritableKeyPath<Participant, Track>) -> Double? {
            guard let delay = self[keyPath: track].delay else { return nil }
            let state = self[keyPath: track]
            if state.isPaused, var last = state.last {
                // A further sender report moves the time of the same frame a little.
                last.captured = last.captured + .microseconds(10)
                self[keyPath: track].last = last
                return lipSync.note(number, isSound: state.isSound, last, now: time(now))
            }
            // The sender's clock counts from another day.
            let captured = (now - delay) * (1 + drift) + 3_900_000_000 + state.ahead
            let playing = LipSync.Playing(
                captured: time(captured), played: time(now + state.isLate + state.hold.now), hold: state.hold.now,
                clock: state.clock, frame: UInt32(now * 90))
            self[keyPath: track].last = playing
            return lipSync.note(number, isSound: state.isSound, playing, now: time(now))
        }

        private func time(_ seconds: Double) -> MediaTime {
            MediaTime(nanoseconds: UInt64(seconds * 1e6) * 1000)
        }
    }

    /// ITU-R BT.1359: earlier sound is noticed.
    private static let limit = 0.045

    /// Three reports of a track show that it is later: 1.5 s. Then a hold of 0.4 s is there within 0.8 s.
    private static let response = 23

    private func isTogether(_ differences: some Sequence<Double>) -> Bool {
        differences.allSatisfy { abs($0) <= Self.limit }
    }

    @Test func `the video waits for sound that is played later, and not more`() {
        var grace = Participant()
        _ = grace.run(seconds: 3)
        #expect(isTogether(grace.run(seconds: 60)))
        #expect(grace.sound.hold.now == 0)
        #expect((0.1...0.16).contains(grace.video.hold.now))
    }

    @Test func `the sound waits for a video whose losses are repaired, and follows it back`() {
        var grace = Participant()
        _ = grace.run(seconds: 3)
        grace.video.delay = 0.4
        let rising = grace.run(seconds: 60)
        // A video that is held already needs no hold any more.
        #expect(isTogether(rising.dropFirst(Self.response)))
        #expect(grace.video.hold.now == 0)
        grace.video.delay = 0.02
        // A track that is earlier shows it at once.
        #expect(isTogether(grace.run(seconds: 60).dropFirst(10)))
        #expect(grace.sound.hold.now == 0)
    }

    /// Sound card and camera against each other, and the sender's clock against the local one, in millionths.
    @Test(arguments: [-100.0, 100], [-100.0, 0, 100])
    func `sound and video stay together for hours of clocks that drift`(devices: Double, sender: Double) {
        var grace = Participant()
        grace.drift = sender / 1_000_000
        (grace.sound.drift, grace.video.drift) = (devices / 1_000_000, -devices / 1_000_000)
        var (worst, mostHeld) = (0.0, (sound: 0.0, video: 0.0))
        for _ in 0..<6 {
            // A pause ends, and the streams begin again with other delays. Within the hour, they pass each other.
            (grace.sound.delay, grace.video.delay) = devices > 0 ? (0.05, 0.4) : (0.4, 0.05)
            let differences = grace.run(seconds: 3600).dropFirst(Self.response)
            worst = max(worst, differences.map { abs($0) }.max() ?? 1)
            mostHeld = (max(mostHeld.sound, grace.sound.hold.now), max(mostHeld.video, grace.video.hold.now))
        }
        #expect(worst <= Self.limit)
        #expect((devices > 0 ? mostHeld.video : mostHeld.sound) > 0.3, "one waits at last that was late at first")
    }

    @Test func `late frames after a stall move nothing`() {
        var grace = Participant()
        _ = grace.run(seconds: 10)
        // Nothing arrives for a while, and then frames seem a second old.
        grace.video.delay = nil
        _ = grace.run(seconds: 1.5)
        grace.video.delay = 0.02
        grace.video.isLate = 1
        let first = grace.run(seconds: 1)
        grace.video.isLate = 0
        #expect(isTogether(first + grace.run(seconds: 30)))
        #expect(grace.sound.hold.now == 0)
    }

    @Test func `a track that is switched finds the other where it was`() {
        var grace = Participant()
        grace.video.delay = 0.35
        _ = grace.run(seconds: 10)
        let held = grace.sound.hold.now
        #expect(held > 0.15)
        grace.lipSync.remove(1)
        grace.video.delay = nil
        _ = grace.run(seconds: 1.5)
        #expect(grace.sound.hold.now == held)
        grace.video.delay = 0.35
        grace.video.hold = SlewedHold()
        #expect(isTogether(grace.run(seconds: 30)))
    }

    @Test func `a video whose sound has ended goes on without a hold, and one without sound never has one`() {
        var grace = Participant()
        _ = grace.run(seconds: 10)
        grace.sound.delay = nil
        _ = grace.run(seconds: 10)
        #expect(grace.video.hold.now == 0)
        var silent = Participant()
        silent.sound.isSound = false
        _ = silent.run(seconds: 10)
        #expect(silent.video.hold.now == 0)
    }

    @Test func `a track that plays nothing new holds the others no longer`() {
        var grace = Participant()
        grace.video.delay = 0.35
        _ = grace.run(seconds: 10)
        #expect(grace.sound.hold.now > 0.15)
        grace.video.isPaused = true
        _ = grace.run(seconds: 10)
        #expect(grace.sound.hold.now == 0)
        grace.video.isPaused = false
        _ = grace.run(seconds: 10)
        #expect(isTogether(grace.run(seconds: 10)))
    }

    @Test func `tracks whose clocks count from different times are not compared`() {
        for ahead in [-7200.0, 7200, 6, 4e8] {
            var grace = Participant()
            grace.video.ahead = ahead
            _ = grace.run(seconds: 10)
            #expect(grace.video.hold.now == 0 && grace.sound.hold.now == 0)
        }
    }

    @Test func `tracks whose capture times come from different clocks are not compared`() {
        var grace = Participant()
        grace.video.clock = 1
        _ = grace.run(seconds: 10)
        #expect(grace.video.hold.now == 0 && grace.sound.hold.now == 0)
    }

    @Test func `through a switch of layers, sound and video stay together`() {
        var grace = Participant()
        _ = grace.run(seconds: 10)
        // The keyframe of the next layer takes long on the way, and its frames a little longer than those before.
        grace.video.delay = 0.04
        grace.video.isLate = 0.25
        let keyframe = grace.run(seconds: 0.5)
        grace.video.isLate = 0
        #expect(isTogether(keyframe + grace.run(seconds: 30)))
        // And back.
        grace.video.delay = 0.02
        #expect(isTogether(grace.run(seconds: 30)))
    }

    @Test func `a hold has a bound, and changes by 8 % of the time near its goal`() {
        var grace = Participant()
        grace.video.delay = 5
        var (before, slowSteps) = (0.0, 0)
        for _ in 0..<100 {
            _ = grace.run(seconds: 0.1)
            let step = abs(grace.sound.hold.now - before)
            #expect(step <= 0.0501)
            if LipSync.maximum - before <= SlewedHold.noticed {
                #expect(step <= 0.0081)
                slowSteps += 1
            }
            before = grace.sound.hold.now
        }
        #expect(slowSteps > 5)
        #expect(abs(before - LipSync.maximum) < 0.001)
    }
}

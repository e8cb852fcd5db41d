import RTP
import Testing

@testable import ClientCore

struct MediaWatchTests {
    private var watch = MediaWatch()

    private func at(_ seconds: Double) -> MonotonicTime { .zero + .milliseconds(Int64(seconds * 1000)) }

    @Test mutating func `a server that does not answer to frames is told once, and its return with the time`() {
        #expect(watch.update(up: (at(10), 100, at(10)), down: nil, now: at(10)) == nil)
        #expect(watch.update(up: (at(10), 110, at(10)), down: nil, now: at(10.5)) == nil)
        #expect(watch.update(up: (at(10), 120, at(10)), down: nil, now: at(12)) == nil)
        #expect(
            watch.update(up: (at(10), 130, at(10)), down: nil, now: at(12.5))
                == .interrupted(isOutgoing: true, .milliseconds(2500)))
        #expect(watch.since == at(10))
        #expect(watch.update(up: (at(10), 200, at(10)), down: nil, now: at(14.5)) == nil)
        #expect(watch.update(up: (at(10), 400, at(10)), down: (at(10), true), now: at(20)) == nil)
        #expect(
            watch.update(up: (at(31), 500, at(31)), down: nil, now: at(31)) == .restored(.seconds(21), isOutgoing: true)
        )
        #expect(watch.since == nil)
        #expect(watch.update(up: (at(32), 600, at(32)), down: nil, now: at(32)) == nil)
    }

    @Test mutating func `silence after nothing was sent is no interruption`() {
        #expect(watch.update(up: (at(10), 100, at(10)), down: nil, now: at(10)) == nil)
        #expect(watch.update(up: (at(10), 100, at(10)), down: nil, now: at(17)) == nil)
        #expect(watch.update(up: nil, down: nil, now: at(30)) == nil)
    }

    @Test mutating func `frames that begin after a quiet time have as long for an answer, and their pause is none`() {
        #expect(watch.update(up: (at(10), 100, at(10)), down: nil, now: at(10)) == nil)
        #expect(watch.update(up: (at(10), 101, at(10)), down: nil, now: at(16)) == nil)
        #expect(watch.update(up: (at(16.2), 110, at(16.2)), down: nil, now: at(16.5)) == nil)
    }

    @Test mutating func `a viewer learns that nothing arrives`() {
        #expect(watch.update(up: nil, down: (at(10), true), now: at(10)) == nil)
        #expect(
            watch.update(up: nil, down: (at(10), true), now: at(20)) == .interrupted(isOutgoing: false, .seconds(10)))
        #expect(watch.update(up: nil, down: (at(10), true), now: at(20.5)) == nil)
        #expect(
            watch.update(up: nil, down: (at(24.9), false), now: at(25)) == .restored(.seconds(15), isOutgoing: false))
    }

    @Test mutating func `reports after the last media show that the publisher pauses`() {
        #expect(watch.update(up: nil, down: (at(10), true), now: at(10)) == nil)
        #expect(watch.update(up: nil, down: (at(11.4), false), now: at(11.5)) == nil)
        #expect(watch.update(up: nil, down: (at(11.4), false), now: at(17)) == nil)
        #expect(watch.update(up: nil, down: (at(17.5), false), now: at(17.5)) == nil)
    }

    @Test mutating func `a pause that is over before it was told is told afterwards, in both directions`() {
        #expect(watch.update(up: (at(10), 100, at(10)), down: nil, now: at(10)) == nil)
        #expect(watch.update(up: (at(10), 110, at(10)), down: nil, now: at(10.5)) == nil)
        #expect(watch.update(up: (at(10), 150, at(10)), down: nil, now: at(12.4)) == nil)
        #expect(
            watch.update(up: (at(12.5), 160, at(12.5)), down: nil, now: at(12.9))
                == .restored(.milliseconds(2500), isOutgoing: true))
        #expect(watch.update(up: (at(12.9), 170, at(12.9)), down: (at(13), true), now: at(13)) == nil)
        #expect(watch.update(up: (at(14.9), 170, at(14.9)), down: (at(13), true), now: at(15)) == nil)
        #expect(
            watch.update(up: (at(15.4), 170, at(15.4)), down: (at(15.2), true), now: at(15.4))
                == .restored(.milliseconds(2200), isOutgoing: false))
        // A shorter one is none.
        #expect(watch.update(up: (at(17), 180, at(17)), down: (at(17), true), now: at(17)) == nil)
    }

    @Test mutating func `silence counts from when media is expected, and without media two reports long`() {
        #expect(watch.update(up: nil, down: nil, now: at(300)) == nil)
        for isMedia in [false, true] {
            var watch = watch
            // Nothing has arrived since the handshake, or since the last video ended.
            #expect(watch.update(up: nil, down: (at(10), isMedia), now: at(300)) == nil)
            #expect(watch.update(up: nil, down: (at(10), isMedia), now: at(316.5)) == nil)
            #expect(
                watch.update(up: nil, down: (at(10), isMedia), now: at(317))
                    == .interrupted(isOutgoing: false, .seconds(17)))
            #expect(watch.since == at(300) && watch.limitBegan == at(317) && watch.isMissed)
            #expect(
                watch.update(up: nil, down: (at(320), true), now: at(320))
                    == .restored(.seconds(20), isOutgoing: false))
            #expect(
                watch.update(up: nil, down: (at(320), true), now: at(322.5))
                    == .interrupted(isOutgoing: false, .milliseconds(2500)))
            #expect(watch.limitBegan == at(320))
        }
    }

    @Test mutating func `reports of a publisher without frames are no interruption, although one is lost`() {
        for second in stride(from: 300.0, through: 345, by: 0.5) {
            let report = Double(Int(second) / 15 * 15)
            #expect(watch.update(up: nil, down: (at(report), false), now: at(second)) == nil)
        }
    }

    @Test mutating func `an interruption without frames is not missed, and is over when the server is heard`() {
        #expect(watch.update(up: (at(10), 100, at(10)), down: nil, now: at(10)) == nil)
        #expect(watch.update(up: (at(10), 110, at(10)), down: nil, now: at(10.5)) == nil)
        #expect(
            watch.update(up: (at(10), 150, at(10)), down: nil, now: at(12.5))
                == .interrupted(isOutgoing: true, .milliseconds(2500)))
        #expect(watch.isMissed)
        #expect(watch.update(up: (at(10), 150, at(10)), down: nil, now: at(15)) == nil)
        #expect(!watch.isMissed && watch.limitBegan == at(10))
        #expect(watch.update(up: (at(10), 150, at(10)), down: nil, now: at(40)) == nil)
        #expect(watch.limitBegan == at(40))
        var other = watch
        #expect(
            other.update(up: (at(10), 150, at(40.2)), down: nil, now: at(40.5))
                == .restored(.milliseconds(30_500), isOutgoing: true))
        #expect(other.update(up: (at(10), 150, at(40.2)), down: nil, now: at(60)) == nil)
        // Frames begin again on a path that is still lost.
        #expect(watch.update(up: (at(10), 160, at(10)), down: nil, now: at(41)) == nil)
        #expect(watch.isMissed && watch.limitBegan == at(40))
    }
}

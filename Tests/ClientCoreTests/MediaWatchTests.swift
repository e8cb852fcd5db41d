import RTP
import Testing

@testable import ClientCore

struct MediaWatchTests {
    private var watch = MediaWatch()

    private func at(_ seconds: Double) -> MonotonicTime { .zero + .milliseconds(Int64(seconds * 1000)) }

    @Test mutating func `a server that does not answer to frames is told once, and its return with the time`() {
        #expect(watch.update(up: (at(10), 100), down: nil, now: at(10)) == nil)
        #expect(watch.update(up: (at(10), 110), down: nil, now: at(10.5)) == nil)
        #expect(watch.update(up: (at(10), 120), down: nil, now: at(12.5)) == nil)
        #expect(
            watch.update(up: (at(10), 130), down: nil, now: at(13)) == .interrupted(isOutgoing: true, .seconds(3)))
        #expect(watch.update(up: (at(10), 200), down: nil, now: at(14.5)) == nil)
        #expect(watch.update(up: (at(10), 300), down: nil, now: at(15)) == .lasting(isOutgoing: true))
        #expect(watch.update(up: (at(10), 400), down: at(10), now: at(20)) == nil)
        #expect(watch.update(up: (at(31), 500), down: nil, now: at(31)) == .restored(.seconds(21), isOutgoing: true))
        #expect(watch.update(up: (at(32), 600), down: nil, now: at(32)) == nil)
    }

    @Test mutating func `silence after nothing was sent is no interruption`() {
        #expect(watch.update(up: (at(10), 100), down: nil, now: at(10)) == nil)
        #expect(watch.update(up: (at(10), 100), down: nil, now: at(17)) == nil)
        #expect(watch.update(up: nil, down: nil, now: at(30)) == nil)
    }

    @Test mutating func `frames that begin after a quiet time have as long for an answer`() {
        #expect(watch.update(up: (at(10), 100), down: nil, now: at(10)) == nil)
        #expect(watch.update(up: (at(10), 101), down: nil, now: at(16)) == nil)
        #expect(watch.update(up: (at(16.2), 110), down: nil, now: at(16.5)) == nil)
    }

    @Test mutating func `a server that is heard, but reports no arrivals, is not reached`() {
        #expect(watch.update(up: (at(10), 100), isBlocked: true, down: nil, now: at(10)) == nil)
        #expect(
            watch.update(up: (at(12.5), 100), isBlocked: true, down: nil, now: at(12.5))
                == .interrupted(isOutgoing: true, .milliseconds(2500)))
        #expect(watch.update(up: (at(20), 100), isBlocked: true, down: nil, now: at(20)) == .lasting(isOutgoing: true))
        #expect(watch.update(up: (at(30), 100), down: nil, now: at(30)) == .restored(.seconds(20), isOutgoing: true))
    }

    @Test mutating func `a viewer learns that nothing arrives`() {
        #expect(
            watch.update(up: nil, down: at(10), now: at(20)) == .interrupted(isOutgoing: false, .seconds(10)))
        #expect(watch.update(up: nil, down: at(10), now: at(20.5)) == .lasting(isOutgoing: false))
        #expect(watch.update(up: nil, down: nil, now: at(25)) == .restored(.seconds(15), isOutgoing: false))
    }
}

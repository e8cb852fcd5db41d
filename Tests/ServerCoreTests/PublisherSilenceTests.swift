import RTP
import Testing

@testable import ServerCore

struct PublisherSilenceTests {
    private var silence = PublisherSilence()

    private func at(_ seconds: Double) -> MonotonicTime { .zero + .milliseconds(Int64(seconds * 1000)) }

    private mutating func verdict(_ packet: Double, _ heard: Double, _ now: Double, stalled: Int64 = 0) -> Bool? {
        silence.update(packet: at(packet), heard: at(heard), stalled: .seconds(stalled), now: at(now))
    }

    @Test mutating func `a publisher is lost when everything ends at once, and back when it is heard`() {
        #expect(verdict(10, 10, 10.1) == nil)
        #expect(verdict(10, 10.05, 11.9) == nil)
        #expect(verdict(10, 10.05, 12.1) == true)
        #expect(verdict(10, 10.05, 13) == nil)
        #expect(verdict(10, 20, 20) == false)
    }

    @Test mutating func `a publisher that pauses sends reports, and is lost only after two of their longest intervals`()
    {
        #expect(verdict(10, 11.2, 14) == nil)
        #expect(verdict(10, 11.2, 27) == nil)
        #expect(verdict(10, 11.2, 28.3) == true)
    }

    @Test mutating func `a server that stood still does not count that time`() {
        #expect(verdict(10, 10.05, 10.1, stalled: 3) == nil)
        #expect(verdict(12, 12.05, 12.1, stalled: 3) == nil)
        #expect(verdict(12, 12.05, 17.1, stalled: 8) == nil)
        #expect(verdict(12, 12.05, 18.9, stalled: 8) == nil)
        #expect(verdict(12, 12.05, 19.1, stalled: 8) == true)
    }

    @Test mutating func `one that has not begun is not lost`() {
        #expect(verdict(0, 0.1, 100) == nil)
    }
}

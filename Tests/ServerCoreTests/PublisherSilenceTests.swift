import RTP
import Testing

@testable import ServerCore

struct PublisherSilenceTests {
    private var silence = PublisherSilence()

    private func at(_ seconds: Double) -> MonotonicTime { .zero + .milliseconds(Int64(seconds * 1000)) }

    private mutating func verdict(_ packet: Double, _ heard: Double, _ now: Double) -> Bool? {
        silence.update(packet: at(packet), heard: at(heard), now: at(now))
    }

    @Test mutating func `a publisher is lost when everything ends at once, and back when it is heard`() {
        #expect(verdict(10, 10, 10.1) == nil)
        #expect(verdict(10, 10.05, 11.9) == nil)
        #expect(verdict(10, 10.05, 12.1) == true)
        #expect(verdict(10, 10.05, 13) == nil)
        #expect(verdict(10, 20, 20) == false)
    }

    @Test mutating func `a publisher that pauses sends reports, and is lost only after their longest interval`() {
        #expect(verdict(10, 11.2, 14) == nil)
        #expect(verdict(10, 11.2, 19) == nil)
        #expect(verdict(10, 11.2, 20.3) == true)
    }

    @Test mutating func `one that has not begun is not lost`() {
        #expect(verdict(0, 0.1, 100) == nil)
    }
}

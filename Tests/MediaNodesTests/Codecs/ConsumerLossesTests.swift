import MediaGraph
import Testing

@testable import MediaNodes

struct ConsumerLossesTests {
    private func time(_ seconds: Double) -> MediaTime { MediaTime(nanoseconds: UInt64(seconds * 1e9)) }

    @Test func `an encoder prepares for the highest loss of its consumers, until that one has gone`() {
        var losses = ConsumerLosses()
        #expect(losses.take(20, of: 1, now: time(10)) == 20)
        // Lower ones change nothing, nor does a repetition.
        #expect(losses.take(2, of: 2, now: time(10.5)) == nil)
        #expect(losses.take(20, of: 1, now: time(11)) == nil)
        #expect(losses.take(2, of: 2, now: time(13.5)) == nil)
        #expect(losses.take(2, of: 2, now: time(14.5)) == 2)
        #expect(losses.take(5, of: 2, now: time(15)) == 5)
    }
}

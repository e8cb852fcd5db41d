import MediaGraph
import Testing

@Suite struct MediaTimeTests {
    private let second = MediaTime(nanoseconds: 1_000_000_000)

    @Test func `adds and subtracts durations to the nanosecond`() {
        #expect(second + .milliseconds(33) == MediaTime(nanoseconds: 1_033_000_000))
        #expect(second - .nanoseconds(1) == MediaTime(nanoseconds: 999_999_999))
        #expect(second + .seconds(-1) == MediaTime(nanoseconds: 0))
        #expect(second + .seconds(9_300_000_000) == MediaTime(nanoseconds: 9_300_000_001_000_000_000))
    }

    @Test func `the difference of two times is a duration, negative if the second one is later`() {
        let later = MediaTime(nanoseconds: 1_250_000_000)
        #expect(later - second == .milliseconds(250))
        #expect(second - later == .milliseconds(-250))
    }

    @Test func `stops at the ends of the clock's range`() {
        let last = MediaTime(nanoseconds: .max)
        #expect(second - .seconds(2) == MediaTime(nanoseconds: 0))
        #expect(last + .nanoseconds(1) == last)
        #expect(second + .seconds(Int64.max) == last)
        #expect(second - .seconds(Int64.max) == MediaTime(nanoseconds: 0))
    }
}

import Testing

@testable import MediaNodes

struct EvenTimesTests {
    private let frame: UInt64 = 40_000_000

    @Test func `an encoder gets frames at the rate of their format, whatever is skipped`() {
        var times = EvenTimes()
        times.setRate(25)
        let originals = [0, 1, 2, 13, 14, 17, 20].map { UInt64($0) * frame + 1000 }
        let even = originals.map { times.even($0) }
        #expect(zip(even, even.dropFirst()).allSatisfy { $1 - $0 == frame })
        #expect(even.map { times.original(of: $0) } == originals)
    }

    @Test func `the times of a source that runs back still rise`() {
        var times = EvenTimes()
        let even = [500, 533, 100, 90, 4000].map { times.even($0 * 1_000_000) }
        #expect(zip(even, even.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test func `no time is before the start of a segment`() {
        var times = EvenTimes()
        times.setRate(30)
        _ = times.even(0)
        times.beginSegment()
        #expect(times.even(100_000_000_001) >= 100_000_000_001)
        times.beginSegment()
        #expect(times.even(5) > 100_000_000_001)
    }

    @Test(arguments: [7.5, 60, 30000 / 1001.0])
    func `times rise over a change of the rate, and fall between the ticks of the new one`(rate: Double) {
        var times = EvenTimes()
        times.setRate(25)
        var last = (0..<40).map { times.even($0 * frame) }.last ?? 0
        times.setRate(rate)
        for index in 40..<1000 {
            let next = times.even(UInt64(index) * frame)
            #expect(next > last)
            let place = Double(next) * rate / 1e9
            #expect(abs(place - place.rounded(.down) - 0.5) < 0.01)
            last = next
        }
    }

    @Test func `a frame that the encoder dropped does not hold up the times of others`() {
        var times = EvenTimes()
        let even = (0..<20).map { times.even($0 * frame) }
        #expect(times.original(of: even[0]) == nil)
        #expect(times.original(of: even[10]) == 10 * frame)
        #expect(times.original(of: even[9]) == nil)
        #expect(times.original(of: even[11]) == 11 * frame)
    }
}

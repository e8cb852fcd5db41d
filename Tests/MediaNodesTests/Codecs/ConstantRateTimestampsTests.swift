import Testing

@testable import MediaNodes

struct ConstantRateTimestampsTests {
    private let frame: UInt64 = 40_000_000

    @Test
    func `an encoder gets frames at the rate of their format, whatever is skipped, and they get their times back`() {
        var times = ConstantRateTimestamps()
        times.setRate(25)
        let places: [UInt64] = [0, 1, 2, 13, 14, 17, 20]
        let originals = zip(places, places.dropFirst()).map {
            ConstantRateTimestamps.Frame(timestamp: $0 * frame + 1000, duration: ($1 - $0) * frame)
        }
        let replaced = originals.map { times.replace($0) }
        #expect(zip(replaced, replaced.dropFirst()).allSatisfy { $1.timestamp - $0.timestamp == frame })
        #expect(replaced.allSatisfy { $0.duration == frame })
        #expect(replaced.map { times.original(of: $0.timestamp) } == originals)
    }

    @Test func `the times of a source that runs back still rise`() {
        var times = ConstantRateTimestamps()
        let replaced = [500, 533, 100, 90, 4000].map { times.timestamp(for: $0 * 1_000_000) }
        #expect(zip(replaced, replaced.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test func `no time is before the start of a segment`() {
        var times = ConstantRateTimestamps()
        times.setRate(30)
        _ = times.timestamp(for: 0)
        times.beginSegment()
        #expect(times.timestamp(for: 100_000_000_001) >= 100_000_000_001)
        times.beginSegment()
        #expect(times.timestamp(for: 5) > 100_000_000_001)
    }

    @Test(arguments: [7.5, 60, 30000 / 1001.0])
    func `times rise over a change of the rate, and fall between the ticks of the new one`(rate: Double) {
        var times = ConstantRateTimestamps()
        times.setRate(25)
        var last = (0..<40).map { times.timestamp(for: $0 * frame) }.last ?? 0
        times.setRate(rate)
        for index in 40..<1000 {
            let next = times.timestamp(for: UInt64(index) * frame)
            #expect(next > last)
            let place = Double(next) * rate / 1e9
            #expect(abs(place - place.rounded(.down) - 0.5) < 0.01)
            last = next
        }
    }

    @Test func `a frame that the encoder dropped does not hold up the times of others`() {
        var times = ConstantRateTimestamps()
        let replaced = (0..<20).map { times.timestamp(for: $0 * frame) }
        #expect(times.original(of: replaced[0]) == nil)
        #expect(times.original(of: replaced[10])?.timestamp == 10 * frame)
        #expect(times.original(of: replaced[9]) == nil)
        #expect(times.original(of: replaced[11])?.timestamp == 11 * frame)
    }
}

extension ConstantRateTimestamps {
    fileprivate mutating func timestamp(for original: UInt64) -> UInt64 {
        replace(Frame(timestamp: original)).timestamp
    }
}

import MediaGraph
import Testing

@testable import MediaNodes

/// Waits and rates, on virtual time.
@Suite struct RateLimitTests {
    private let second: UInt64 = 1_000_000_000

    @Test("The restart delay of a failing program doubles each time, up to half a minute")
    func backoff() {
        let waits = (0..<10).map { Backoff(first: 0.25, longest: 30).pause(after: $0) }
        #expect(waits == [0.25, 0.5, 1, 2, 4, 8, 16, 30, 30, 30])
        #expect(Backoff(first: 0.25, longest: 30).pause(after: .max) == 30)
    }

    @Test("Omitted messages are counted, and reported with the next one")
    func words() {
        var words = LogLimit(perSecond: 1, burst: 2, now: 0)
        #expect((0..<5).map { _ in words.admit(now: 0) } == [0, 0, nil, nil, nil])
        #expect(words.admit(now: second + 1000) == 3)
        #expect(words.admit(now: second + 1000) == nil)
        #expect(words.admit(now: 10 * second) == 1)
        #expect(words.admit(now: 10 * second) == 0)
    }

    @Test("Input above the rate limit waits for its turn only")
    func rate() {
        var rate = RateLimit(perSecond: 10, burst: 3, now: 0)
        for _ in 0..<3 {
            #expect(rate.delay(now: 0) == 0)
            rate.take()
        }
        #expect(abs(rate.delay(now: 0) - 0.1) < 1e-9)
        #expect(abs(rate.delay(now: second / 20) - 0.05) < 1e-9)
        #expect(rate.delay(now: second / 10 + 1000) == 0)
        rate.take()
        #expect(rate.delay(now: 100 * second) == 0)
        // A long silence earns no more than the burst.
        for _ in 0..<3 { rate.take() }
        #expect(rate.delay(now: 100 * second) > 0)
        // Over a long time, as many pass as the limit allows.
        var (now, taken) = (200 * second, 0)
        while now < 210 * second {
            if rate.delay(now: now) == 0 {
                rate.take()
                taken += 1
            }
            now += 1_000_000
        }
        #expect((100...104).contains(taken))
    }

    /// The frames of a camera that pass, at `rate` frames/s but for a silence.
    private func passed(
        _ wish: Double, of rate: Double, seconds: Int = 10, silent: Range<Double> = 0..<0
    ) -> [Double] {
        var pace = FramePace(framesPerSecond: wish)
        let times: [Double] = (0..<Int(rate * Double(seconds))).map { Double($0) / rate }
        return times.filter { time in
            if silent.contains(time) { return false }
            return pace.admits(UInt64((time * 1e9).rounded(.down)))
        }
    }

    @Test(arguments: [(20.0, 30.0), (15, 30), (29.97, 30), (20, 25), (50, 60), (7, 240), (30, 30)])
    func `frames are dropped evenly down to a rate`(wish: Double, of rate: Double) {
        let times = passed(wish, of: rate, seconds: 100)
        #expect(abs(Double(times.count) - wish * 100) <= 1)
        let gaps: [Double] = zip(times, times.dropFirst()).map { $1 - $0 }
        let longest = gaps.max() ?? 0
        #expect(longest < 1 / wish + 1 / rate)
    }

    @Test func `after a silence, frames pass at the rate, and not all at once`() {
        let after = passed(20, of: 100, silent: 3..<8).filter { $0 >= 8 }
        #expect(abs(after.count - 40) <= 1)
        #expect(zip(after, after.dropFirst()).allSatisfy { $1 - $0 > 0.049 })
    }

    @Test func `frames whose times have run back pass at the rate`() {
        var pace = FramePace(framesPerSecond: 10)
        let milliseconds: [UInt64] = (0..<10).map { 100_000 + $0 * 50 } + (0..<10).map { 50_000 + $0 * 50 }
        let passed = milliseconds.indices.filter { pace.admits(milliseconds[$0] * 1_000_000) }
        #expect(passed == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18])
    }

    @Test("A program's output becomes lines without control characters, limited in number")
    func lines() {
        var log = LineLog(now: 0)
        #expect(log.append(Array("one\ntw".utf8), now: 0) == ["one"])
        #expect(log.append(Array("o\n\n\u{1b}[1mx\u{7}\r\n".utf8), now: 0) == ["two", "[1mx"])
        #expect(log.append(Array(String(repeating: "l", count: 5000).utf8) + [0x0a], now: 0).first?.count == 500)
        let many = log.append(Array((0..<100).map { "\($0)\n" }.joined().utf8), now: 0)
        #expect(many.count == 16 && log.last == "99")
        #expect(log.append(Array("later\n".utf8), now: second) == ["(84 lines omitted)", "later"])
        #expect(log.append(Array("rest".utf8), now: second).isEmpty)
        #expect(log.takeLine() == "rest" && log.takeLine() == nil)
    }
}

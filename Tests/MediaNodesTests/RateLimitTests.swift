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

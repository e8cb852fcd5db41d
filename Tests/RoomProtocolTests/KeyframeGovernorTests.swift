import RTP
import RoomProtocol
import TestSupport
import Testing

@Suite("S16 keyframe requests") struct KeyframeGovernorTests {
    @Test func `200 subscribers cost the publisher one keyframe request per second, the first immediately`() {
        var random = Seeded(16)
        var governor = KeyframeGovernor()
        var asked: [MonotonicTime] = []
        var pending: MonotonicTime?
        let joins = (0..<200).map { _ in Int64.random(in: 0..<10_000, using: &random) }.sorted()
        for milliseconds in joins {
            let now = MonotonicTime.zero + .seconds(100) + .milliseconds(milliseconds)
            if let due = pending, due <= now {
                let isWanted = governor.timeout(now: due)
                #expect(isWanted)
                asked.append(due)
                pending = nil
            }
            switch governor.request(now: now) {
            case .askNow: asked.append(now)
            case .askAt(let time):
                #expect(time - now <= KeyframeGovernor.interval)
                pending = time
            case .wait: #expect(pending != nil)
            }
        }
        #expect(asked.first == .zero + .seconds(100) + .milliseconds(joins[0]))
        for (earlier, later) in zip(asked, asked.dropFirst()) {
            #expect(later - earlier >= .seconds(1))
        }
        #expect(asked.count > 5)
    }

    @Test func `a keyframe that arrives meanwhile answers a waiting request`() {
        var governor = KeyframeGovernor()
        let start = MonotonicTime.zero + .seconds(100)
        let first = governor.request(now: start)
        #expect(first == .askNow)
        let second = governor.request(now: start + .milliseconds(10))
        #expect(second == .askAt(start + .seconds(1)))
        governor.keyframeBegan()
        let isWanted = governor.timeout(now: start + .seconds(1))
        #expect(!isWanted)
        let third = governor.request(now: start + .seconds(2))
        #expect(third == .askNow)
    }

    @Test func `requests to an encoder are a tenth of a second apart, and none is lost`() {
        var governor = KeyframeGovernor(interval: KeyframeGovernor.encoderInterval)
        let start = MonotonicTime.zero + .seconds(100)
        let verdicts = [0, 10, 50].map { governor.request(now: start + .milliseconds($0)) }
        #expect(verdicts == [.askNow, .askAt(start + .milliseconds(100)), .wait])
        let isWanted = governor.timeout(now: start + .milliseconds(100))
        let next = governor.request(now: start + .milliseconds(199))
        #expect(isWanted && next == .askAt(start + .milliseconds(200)))
    }
}

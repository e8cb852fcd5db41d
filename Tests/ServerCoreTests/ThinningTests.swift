import CongestionControl
import RTP
import Testing

@testable import ServerCore

/// Frames of two packets of 5000 bytes, 40 ms apart: 2 Mbit/s.
struct ThinningTests {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000_000)

    private static func timestamp(_ frame: Int) -> RTPTimestamp { RTPTimestamp(0xffff_0000).advanced(by: frame * 3600) }

    /// Whether each packet of a frame passes, and whether one asks for a keyframe.
    private static func pass(
        _ frame: Int, isKeyframe: Bool = false, _ thinning: inout Thinning
    ) -> (passed: Bool, asks: Bool) {
        let now = start + .milliseconds(Int64(frame) * 40)
        var (passed, asks) = ([Bool](), false)
        for packet in 0..<2 {
            let verdict = thinning.verdict(
                bytes: 5000, timestamp: timestamp(frame), isNewest: true, isStart: isKeyframe && packet == 0, now: now)
            passed.append(verdict == .pass)
            if verdict == .drop(asks: true) { asks = true }
        }
        #expect(Set(passed).count == 1, "A frame was cut in two.")
        return (passed[0], asks)
    }

    @Test func `a stream of four times its share becomes whole groups of frames`() {
        var thinning = Thinning(isAlone: true)
        var (passed, wantsKeyframe, isBroken) = (0, true, false)
        for frame in 0..<1000 {
            thinning.setShare(500_000, now: Self.start + .milliseconds(Int64(frame) * 40))
            let outcome = Self.pass(frame, isKeyframe: wantsKeyframe, &thinning)
            if outcome.passed {
                if wantsKeyframe { isBroken = false }
                #expect(!isBroken, "Frame \(frame) refers to one that was left out.")
                passed += 1
            } else {
                isBroken = true
            }
            wantsKeyframe = outcome.asks
        }
        #expect(passed > 150 && passed < 270, "\(passed)")
    }

    @Test func `a repaired packet of a frame that was left out is left out too`() {
        var thinning = Thinning(isAlone: true)
        thinning.setShare(100_000, now: Self.start)
        #expect(Self.pass(0, isKeyframe: true, &thinning).passed)
        #expect(!Self.pass(1, &thinning).passed)
        for (frame, passes) in [(0, true), (1, false)] {
            let verdict = thinning.verdict(
                bytes: 5000, timestamp: Self.timestamp(frame), isNewest: false, isStart: false, now: Self.start)
            #expect((verdict == .pass) == passes)
        }
    }

    @Test func `when the link carries everything again, the stream goes on at a keyframe`() {
        var thinning = Thinning(isAlone: false)
        thinning.setShare(100_000, now: Self.start)
        #expect(Self.pass(0, isKeyframe: true, &thinning).passed)
        #expect(!Self.pass(1, &thinning).passed)
        thinning.setShare(nil, now: Self.start)
        #expect(!thinning.hasShare)
        #expect(Self.pass(2, &thinning) == (false, true))
        #expect(Self.pass(3, isKeyframe: true, &thinning).passed)
        #expect(Self.pass(4, &thinning).passed)
    }
}

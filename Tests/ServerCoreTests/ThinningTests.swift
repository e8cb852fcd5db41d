import RTP
import Testing

@testable import ServerCore

/// Frames of two packets of 5000 bytes, 40 ms apart: 2 Mbit/s.
struct ThinningTests {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000_000)

    private static func time(_ frame: Int) -> MonotonicTime { start + .milliseconds(Int64(frame) * 40) }
    private static func timestamp(_ frame: Int) -> RTPTimestamp { RTPTimestamp(0xffff_0000).advanced(by: frame * 3600) }

    /// How many of 1000 frames are sent, if keyframes come when there is room, and the longest time without any.
    private func send(isAlone: Bool, share: Double?) -> (frames: Int, longestPause: TimeInterval) {
        var thinning = Thinning()
        var (frames, last, longest) = (0, Self.start, TimeInterval.zero)
        for frame in 0..<1000 {
            let now = Self.time(frame)
            if let share { thinning.setShare(share, now: now) }
            if thinning.isPausing, !thinning.resumes(isAlone: isAlone, now: now) { continue }
            guard !thinning.pauses(before: Self.timestamp(frame), isNewest: true, now: now) else { continue }
            for _ in 0..<2 { thinning.sent(bytes: 5000) }
            (frames, longest, last) = (frames + 1, max(longest, now - last), now)
        }
        return (frames, longest)
    }

    @Test func `a stream of four times its share loses three quarters of its frames`() {
        let alone = send(isAlone: true, share: 500_000)
        #expect(alone.frames > 230 && alone.frames < 270, "\(alone)")
        #expect(alone.longestPause < .seconds(1))
    }

    @Test func `subscribers among others go on together each two seconds, because keyframes cost everyone`() {
        let shared = send(isAlone: false, share: 500_000)
        #expect(shared.longestPause > .seconds(1) && shared.longestPause < .seconds(3), "\(shared)")
        #expect(shared.frames > 75)
    }

    @Test func `a subscriber among others goes on at a keyframe that comes without a request`() {
        var thinning = Thinning()
        thinning.setShare(500_000, now: Self.start)
        thinning.sent(bytes: 40_000)
        let pauses = thinning.pauses(before: Self.timestamp(1), isNewest: true, now: Self.start)
        // None of the common times, 2 s apart. The queue is 640 ms long at first.
        func resumes(isKeyframe: Bool, after milliseconds: Int64) -> Bool {
            thinning.resumes(isKeyframe: isKeyframe, isAlone: false, now: Self.start + .milliseconds(milliseconds))
        }
        let (early, other, keyframe) = (
            resumes(isKeyframe: true, after: 400), resumes(isKeyframe: false, after: 1000),
            resumes(isKeyframe: true, after: 1040)
        )
        #expect(pauses && !early && !other && keyframe)
    }

    @Test func `a stream within its share, or without one, loses nothing`() {
        #expect(send(isAlone: true, share: 2_100_000).frames == 1000)
        #expect(send(isAlone: true, share: nil).frames == 1000)
    }

    @Test func `a packet of a frame that has begun is never left out`() {
        var thinning = Thinning()
        thinning.setShare(10_000, now: Self.start)
        func pauses(_ frame: Int, isNewest: Bool = true) -> Bool {
            thinning.pauses(before: Self.timestamp(frame), isNewest: isNewest, now: Self.start)
        }
        let first = pauses(0)
        thinning.sent(bytes: 5000)
        let second = pauses(0)
        #expect(!first && !second)
        let (pauses1, late) = (pauses(1), pauses(0, isNewest: false))
        #expect(pauses1 && !late)
    }

    @Test func `a share that is not renewed ends after three seconds`() {
        var thinning = Thinning()
        thinning.setShare(10_000, now: Self.start)
        thinning.sent(bytes: 5000)
        let pauses = thinning.pauses(before: Self.timestamp(1), isNewest: true, now: Self.start)
        let early = thinning.resumes(isAlone: true, now: Self.start + .milliseconds(2900))
        let late = thinning.resumes(isAlone: true, now: Self.start + .seconds(3))
        #expect(pauses && !early && late)
    }

    /// Whether each of so many frames of the pattern 0, 2, 1, 2 is sent, at 2 Mbit/s.
    private func sendLayers(
        _ thinning: inout Thinning, _ frames: Range<Int>, share: Double?, hasSync: Bool = true, top: UInt8 = 2,
        keyframe: Int? = nil
    ) -> [Bool] {
        frames.map { frame in
            let now = Self.time(frame)
            if let share { thinning.setShare(share, now: now) }
            let layer: UInt8 = frame % 4 == 0 ? 0 : frame % 4 == 2 ? 1 : top
            let isLeftOut =
                layer == 0
                ? thinning.pauses(
                    before: Self.timestamp(frame), isKeyframe: frame == keyframe, isNewest: true, now: now)
                : thinning.leavesOut(
                    layer, isSync: hasSync && frame % 4 != 3, of: Self.timestamp(frame), isNewest: true, now: now)
                    ?? false
            if !isLeftOut { for _ in 0..<2 { thinning.sent(bytes: 5000) } }
            return !isLeftOut
        }
    }

    @Test(arguments: [(550_000.0, 4), (1_100_000, 2)])
    func `the upper temporal layers go first, and the rest has no pause`(share: (rate: Double, part: Int)) {
        var thinning = Thinning()
        _ = sendLayers(&thinning, 0..<100, share: share.rate)
        let sent = sendLayers(&thinning, 100..<1000, share: share.rate)
        #expect(sent.count(where: { $0 }) >= 900 / share.part)
        #expect(stride(from: 0, to: 900, by: 4).allSatisfy { sent[$0] })
        // The second layer depends on the first one at every fourth frame.
        #expect(stride(from: 0, to: 900, by: 4).allSatisfy { !sent[$0 + 3] || sent[$0 + 2] })
    }

    @Test func `layers that depend on missing frames come back at a requested keyframe`() {
        var thinning = Thinning()
        _ = sendLayers(&thinning, 0..<200, share: 550_000, hasSync: false)
        _ = thinning.end(now: Self.time(200))
        let (early, late) = (
            thinning.needsKeyframe(now: Self.time(200) + .milliseconds(4900)),
            thinning.needsKeyframe(now: Self.time(200) + .seconds(6))
        )
        #expect(!early && late)
        let before = sendLayers(&thinning, 200..<400, share: nil, hasSync: false)
        #expect(before.enumerated().allSatisfy { $1 == ($0 % 4 == 0) })
        let after = sendLayers(&thinning, 400..<500, share: nil, hasSync: false, keyframe: 400)
        #expect(after.allSatisfy { $0 })
        let isOver = thinning.end(now: Self.time(500))
        #expect(isOver)
    }

    @Test func `a layer number that nothing uses holds no other one back`() {
        var thinning = Thinning()
        _ = sendLayers(&thinning, 0..<200, share: 550_000, top: 3)
        _ = thinning.end(now: Self.time(200))
        let sent = sendLayers(&thinning, 200..<300, share: nil, top: 3)
        #expect(sent[80...].allSatisfy { $0 })
    }

    @Test func `all layers come back one after another when the share ends`() {
        var thinning = Thinning()
        _ = sendLayers(&thinning, 0..<200, share: 550_000)
        let isOver = thinning.end(now: Self.time(200))
        #expect(!isOver)
        let sent = sendLayers(&thinning, 200..<300, share: nil)
        let first = (
            layer1: (0..<100).first { $0 % 4 == 2 && sent[$0] }, layer2: (0..<100).first { $0 % 2 == 1 && sent[$0] }
        )
        #expect((first.layer1 ?? 100) < (first.layer2 ?? 0), "\(first)")
        #expect(sent[80...].allSatisfy { $0 })
        let isOverNow = thinning.end(now: Self.time(300))
        #expect(isOverNow)
    }
}

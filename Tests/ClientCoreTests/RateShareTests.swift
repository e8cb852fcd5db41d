import RTP
import Testing

@testable import ClientCore

@Suite struct RateShareTests {
    private let audio = RateShares.Stream(isVideo: false, used: 60_000)

    private func video(_ wished: Int?, used: Double = 0) -> RateShares.Stream {
        RateShares.Stream(isVideo: true, used: used, wished: wished)
    }

    @Test func `audio comes first, and video gets the rest`() {
        let shares = RateShares.shares(of: 400_000, among: [audio, video(1_000_000)])
        #expect(shares[0] == nil)
        #expect(shares[1] == 340_000)
    }

    @Test func `videos share by what they wish`() throws {
        let shares = RateShares.shares(of: 900_000, among: [video(2_000_000), video(1_000_000), audio])
        let (large, small) = (try #require(shares[0]), try #require(shares[1]))
        #expect((large + small).rounded() == 840_000)
        #expect((1.9...2.0).contains(large / small))
    }

    @Test func `with a lot of room, no video is limited to less than its wish`() throws {
        let streams = [video(2_000_000), video(1_000_000), audio]
        let demand = RateShares.demand(of: streams)
        for share in zip(RateShares.shares(of: demand, among: streams), [2_000_000.0, 1_000_000.0]) {
            #expect(RateShares.mediaRate(ofPath: try #require(share.0)) >= share.1 - 1)
        }
    }

    @Test func `repairs take their part, and video keeps a fifth`() {
        #expect(RateShares.shares(of: 500_000, among: [video(1_000_000)], repairs: 50_000) == [450_000])
        #expect(RateShares.shares(of: 50_000, among: [audio, video(1_000_000)]) == [nil, 10_000])
    }

    @Test func `a video that has fallen silent leaves its share to the others`() throws {
        let off = RateShares.Stream(isVideo: true, used: 0, wished: nil, hasSent: true)
        let shares = RateShares.shares(of: 1_000_000, among: [off, video(800_000)])
        #expect(try #require(shares[1]) > 800_000)
    }

    @Test func `a path carries the headers too`() {
        // 25 frames/s of 4 kB: 4 packets each, with 67 bytes of headers.
        #expect(abs(RateShares.pathRate(ofMedia: 800_000) - 855_000) < 10_000)
        #expect(abs(RateShares.mediaRate(ofPath: RateShares.pathRate(ofMedia: 800_000)) - 800_000) < 1)
        #expect(RateShares.mediaRate(ofPath: 1000) == 0)
    }
}

@Suite struct FrameGateTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)
    private func at(_ milliseconds: Int64) -> MonotonicTime { start + .milliseconds(milliseconds) }

    @Test func `without a share, every frame passes`() {
        var gate = FrameGate()
        for index in 0..<100 {
            #expect(gate.admit(bytes: 100_000, isKeyframe: index == 0, now: at(Int64(index))) == .pass)
        }
        #expect(gate.dropped == 0)
    }

    @Test func `a stream within its share passes, its keyframes too`() {
        var gate = FrameGate()
        for index in 0..<300 {
            let now = at(Int64(index) * 33)
            gate.setShare(1_000_000, now: now)
            // A keyframe of 300 ms every 3 s, and 80 % of the share between.
            let isKeyframe = index % 90 == 0
            #expect(gate.admit(bytes: isKeyframe ? 37_000 : 3000, isKeyframe: isKeyframe, now: now) == .pass)
        }
    }

    @Test func `a stream of three times its share becomes whole groups of frames, and asks for keyframes`() {
        var gate = FrameGate()
        var (passed, asked, bytes, keyframeWanted, broken) = (0, 0, 0, true, false)
        for index in 0..<900 {
            let now = at(Int64(index) * 33)
            gate.setShare(400_000, now: now)
            let isKeyframe = keyframeWanted
            keyframeWanted = false
            let size = isKeyframe ? 20_000 : 5000
            switch gate.admit(bytes: size, isKeyframe: isKeyframe, now: now) {
            case .pass:
                if isKeyframe { broken = false }
                #expect(!broken, "A frame whose references were dropped")
                passed += 1
                bytes += size
            case .drop(let asks):
                broken = true
                if asks {
                    asked += 1
                    keyframeWanted = true
                }
            }
        }
        #expect(gate.dropped == 900 - passed && gate.lastDrop != nil)
        #expect(bytes * 8 / 30 < 420_000 && bytes * 8 / 30 > 250_000)
        #expect(passed > 100 && asked > 10 && asked <= 60)
    }

    @Test func `when the share ends, the stream goes on at a keyframe`() {
        var gate = FrameGate()
        gate.setShare(10_000, now: start)
        #expect(gate.admit(bytes: 50_000, isKeyframe: true, now: start) == .pass)
        #expect(gate.admit(bytes: 5000, isKeyframe: false, now: at(10)) == .drop(asks: false))
        #expect(gate.admit(bytes: 5000, isKeyframe: false, now: at(3001)) == .drop(asks: true))
        #expect(gate.admit(bytes: 5000, isKeyframe: false, now: at(3020)) == .drop(asks: false))
        #expect(gate.admit(bytes: 50_000, isKeyframe: true, now: at(3040)) == .pass)
        #expect(gate.admit(bytes: 50_000, isKeyframe: false, now: at(3060)) == .pass)
    }
}

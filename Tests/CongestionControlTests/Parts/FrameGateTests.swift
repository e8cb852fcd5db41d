import CongestionControl
import RTP
import Testing

struct FrameGateTests {
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

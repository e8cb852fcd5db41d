@testable import MediaNodes
import Testing

private let second: UInt64 = 1_000_000_000
private let millisecond: UInt64 = 1_000_000

@Suite struct RecordingGateTests {
    @Test("A recording begins at a keyframe, with the audio from there on")
    func beginsAtKeyframe() {
        var gate = RecordingGate(hasVideo: true, hasAudio: true, keepsOffsets: true)
        #expect(gate.sound(at: 4 * second).takes)
        #expect(!gate.soundLeaves(at: 4 * second).takes)
        let delta = gate.picture(at: 5 * second, isKeyframe: false, room: .enough)
        #expect(!delta.takes && delta.asksForKeyframe)
        let key = gate.picture(at: 5 * second + 33 * millisecond, isKeyframe: true, room: .enough)
        #expect(key.takes && key.begins && gate.origin == 5 * second + 33 * millisecond)
        #expect(!gate.soundLeaves(at: 5 * second).takes)
        let first = gate.soundLeaves(at: 5 * second + 40 * millisecond)
        #expect(first.takes && first.begins == gate.origin, "the audio keeps its distance to the video")
        let next = gate.picture(at: 5 * second + 66 * millisecond, isKeyframe: false, room: .enough)
        #expect(next == RecordingGate.Decision(takes: true))
    }

    @Test("A missing keyframe is requested again, but not with every frame")
    func asksAgain() {
        var gate = RecordingGate(hasVideo: true, hasAudio: false, keepsOffsets: true)
        let asked = (0..<60).filter {
            gate.picture(at: UInt64($0) * 33 * millisecond, isKeyframe: false, room: .enough).asksForKeyframe
        }
        #expect(asked == [0, 16, 32, 48])
    }

    @Test("A container without offsets begins after the first audio, with the packet closest to the video")
    func nearestPacket() {
        var gate = RecordingGate(hasVideo: true, hasAudio: true, keepsOffsets: false)
        #expect(!gate.picture(at: 0, isKeyframe: true, room: .enough).takes)
        _ = gate.sound(at: 50 * millisecond)
        #expect(gate.picture(at: 66 * millisecond, isKeyframe: false, room: .enough).asksForKeyframe)
        #expect(gate.picture(at: 100 * millisecond, isKeyframe: true, room: .enough).begins)
        #expect(!gate.soundLeaves(at: 70 * millisecond).takes)
        let first = gate.soundLeaves(at: 92 * millisecond)
        #expect(first.takes && first.begins == 92 * millisecond)
        let next = gate.soundLeaves(at: 112 * millisecond)
        #expect(next.takes && next.begins == nil)
        #expect(!gate.soundLeaves(at: 91 * millisecond).takes)
        // Half a packet after the frame is near enough.
        for (first, begins) in [(110 * millisecond, true), (111 * millisecond, false)] {
            var gate = RecordingGate(hasVideo: true, hasAudio: true, keepsOffsets: false)
            _ = gate.sound(at: first)
            #expect(gate.picture(at: 100 * millisecond, isKeyframe: true, room: .enough).begins == begins)
        }
    }

    @Test("A slow disk drops frames up to a keyframe, which is requested once there is room")
    func overflow() {
        var gate = RecordingGate(hasVideo: true, hasAudio: false, keepsOffsets: true)
        _ = gate.picture(at: 0, isKeyframe: true, room: .enough)
        #expect(gate.picture(at: 1 * second, isKeyframe: false, room: .little).takes)
        #expect(!gate.picture(at: 2 * second, isKeyframe: false, room: .none).takes)
        // A keyframe is useless while there is hardly any room for it.
        #expect(!gate.picture(at: 3 * second, isKeyframe: true, room: .little).takes)
        let waiting = gate.picture(at: 4 * second, isKeyframe: false, room: .enough)
        #expect(!waiting.takes && waiting.asksForKeyframe)
        #expect(gate.picture(at: 5 * second, isKeyframe: true, room: .enough).takes)
        #expect(gate.picture(at: 6 * second, isKeyframe: false, room: .enough).takes)
        #expect(gate.droppedPictures == 3)
    }

    @Test func `a pause of both streams ends neither, and a stream that stays away after it is ended`() {
        for returns in [true, false] {
            var gate = RecordingGate(hasVideo: true, hasAudio: true, keepsOffsets: true)
            _ = gate.picture(at: 0, isKeyframe: true, room: .enough)
            _ = gate.sound(at: 0)
            _ = gate.picture(at: 1 * second, isKeyframe: false, room: .enough)
            _ = gate.sound(at: 2 * second)
            // As after an outage of the network. Video waits for a keyframe.
            #expect(gate.sound(at: 20 * second) == RecordingGate.Decision(takes: true))
            #expect(!gate.sound(at: 29 * second).endsOtherSide)
            if returns { #expect(gate.picture(at: 29 * second, isKeyframe: true, room: .enough).takes) }
            #expect(gate.sound(at: 30 * second + 1).endsOtherSide == !returns)
        }
    }

    @Test("Missing audio is given up after 3 s, and an MP4 begins without it")
    func neverAnySound() {
        var gate = RecordingGate(hasVideo: true, hasAudio: true, keepsOffsets: false)
        let early = gate.picture(at: 0, isKeyframe: true, room: .enough)
        #expect(!early.takes && !early.endsOtherSide)
        let late = gate.picture(at: 3 * second + 1, isKeyframe: true, room: .enough)
        #expect(late.takes && late.endsOtherSide)
        // Once.
        #expect(!gate.picture(at: 5 * second, isKeyframe: false, room: .enough).endsOtherSide)
        #expect(!gate.sound(at: 6 * second).takes)
    }

    @Test("A stream that is silent for 10 s ends, and the other continues")
    func fallsSilent() {
        var gate = RecordingGate(hasVideo: true, hasAudio: true, keepsOffsets: true)
        _ = gate.sound(at: 0)
        _ = gate.picture(at: 0, isKeyframe: true, room: .enough)
        for time in 1...9 { #expect(!gate.sound(at: UInt64(time) * second).endsOtherSide) }
        #expect(gate.sound(at: 10 * second + 1).endsOtherSide)
        #expect(gate.sound(at: 11 * second).takes)
        #expect(!gate.sound(at: 12 * second).endsOtherSide)
    }

    @Test("Missing video is given up after 10 s, and the recording begins with its first audio")
    func neverAnyPicture() {
        var gate = RecordingGate(hasVideo: true, hasAudio: true, keepsOffsets: false)
        let early = gate.sound(at: 1 * second)
        #expect(early.takes && !early.begins)
        #expect(!gate.sound(at: 11 * second).begins)
        let late = gate.sound(at: 11 * second + 1)
        #expect(late.takes && late.begins && late.endsOtherSide)
        #expect(gate.origin == 1 * second)
        #expect(!gate.picture(at: 12 * second, isKeyframe: true, room: .enough).takes)
    }

    @Test("Each segment's keyframe is requested with the frame before it")
    func segments() {
        var gate = RecordingGate(hasVideo: true, hasAudio: false, keepsOffsets: true, segment: 2 * second)
        var isKeyframe = true
        var keyframes: [Int] = []
        for number in 0..<200 {
            let decision = gate.picture(at: UInt64(number) * 40 * millisecond, isKeyframe: isKeyframe, room: .enough)
            if isKeyframe { keyframes.append(number) }
            isKeyframe = decision.asksForKeyframe
        }
        #expect(keyframes == [0, 50, 100, 150])
    }

    @Test("Audio alone begins with its first packet")
    func soundAlone() {
        var gate = RecordingGate(hasVideo: false, hasAudio: true, keepsOffsets: false)
        #expect(gate.sound(at: 7 * second).begins && gate.origin == 7 * second)
        #expect(gate.sound(at: 7 * second + 20 * millisecond) == RecordingGate.Decision(takes: true))
        #expect(gate.soundLeaves(at: 7 * second).begins == 7 * second)
    }
}

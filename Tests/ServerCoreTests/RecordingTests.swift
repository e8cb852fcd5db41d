import PeerLoop
import RTP
import RoomProtocol
import Testing

@testable import ServerCore

/// The packets that a recording gets of a stream.
struct RecordingTests {
    @Test func `a recording begins at a keyframe, which it asks for`() {
        let call = RecordedCall()
        #expect(call.sources[0].keyframeRequests == 1)
        for number in 0..<5 { call.send(number, at: 40 * number) }
        call.send(5, at: 200, keyframe: true)
        call.send(6, at: 240)
        call.end()
        #expect(call.tape.marks == [5, 6])
        #expect(call.tape.packets.map(\.time) == [0, 40])
    }

    @Test func `packets in the wrong order and repaired ones get their places`() {
        let call = RecordedCall()
        call.send(1, at: 40, keyframe: true)
        call.send(3, at: 120)
        call.send(2, at: 80)
        call.send(6, at: 240)
        call.send(6, at: 240)
        call.advance(900)
        call.send(5, at: 200)
        call.send(4, at: 160)
        call.send(3, at: 120)
        call.end()
        #expect(call.tape.marks == [1, 2, 3, 4, 5, 6])
        #expect(call.tape.packets.map(\.number) == [0, 1, 2, 3, 4, 5])
        #expect(call.tape.end?.missing == 0)
    }

    @Test func `a packet that cannot come any longer is given up after a second, and its gap keeps its length`() {
        let call = RecordedCall(.opus)
        call.send(1, at: 40)
        call.send(4, at: 160)
        call.advance(999)
        call.send(6, at: 240)
        #expect(call.tape.marks == [1])
        call.advance(1 + 100)
        #expect(call.tape.marks == [1, 4])
        call.send(3, at: 120)
        call.advance(1000)
        call.end()
        #expect(call.tape.marks == [1, 4, 6])
        #expect(call.tape.packets.map(\.time) == [0, 120, 200])
        // A depayloader sees the gap by the numbers.
        #expect(call.tape.packets.map(\.number) == [0, 3, 5])
        #expect(call.tape.end == RecordingEnd(start: call.tape.start, missing: 3, dropped: 0))
    }

    @Test func `no more than a thousand packets wait for a missing one`() {
        let call = RecordedCall(.opus)
        call.send(0, at: 0, keyframe: true)
        for number in 2...(RecordingOrder.capacity + 2) { call.send(number, at: number) }
        call.advance(100)
        #expect(call.tape.packets.count == RecordingOrder.capacity + 2)
    }

    @Test func `packets that come in reverse prolong no gap`() {
        let call = RecordedCall(.opus)
        call.send(1, at: 40, keyframe: true)
        for number in (3...10).reversed() {
            call.send(number, at: 40 * number)
            call.advance(200)
        }
        // 5, 4 and 3 came after the gap had closed, a second after 10.
        #expect(call.tape.marks == [1, 6, 7, 8, 9, 10])
        call.end()
        #expect(call.tape.end?.missing == 4)
    }

    @Test func `padding leaves no gap`() {
        let call = RecordedCall()
        call.send(0, at: 0, keyframe: true)
        call.send(1, at: 0, padding: true)
        call.send(2, at: 40)
        call.end()
        #expect(call.tape.packets.map(\.number) == [0, 1])
        #expect(call.tape.end?.missing == 0)
    }

    @Test func `packets reach the sink ten times a second, and at once if there are many`() {
        let call = RecordedCall()
        var first = 0
        call.deliver([0], from: &first, milliseconds: 2000)
        #expect((15...20).contains(call.tape.batches), "\(call.tape.batches)")
    }

    @Test func `a muted stream goes on at the time at which it sends again, after a night, too`() {
        let call = RecordedCall(.opus)
        call.send(0, at: 0)
        call.send(1, at: 20)
        let night = 14 * 3_600_000
        call.advance(night)
        call.send(2, at: night)
        call.send(3, at: night + 20)
        call.end()
        #expect(call.tape.packets.map(\.time) == [0, 20, Double(night) + 20, Double(night) + 40])
    }

    @Test func `timestamps that jump by an hour change nothing`() {
        let call = RecordedCall(.opus)
        call.send(0, at: 0)
        call.advance(20)
        call.send(1, at: 3_600_000)
        call.advance(20)
        call.send(2, at: 3_600_020)
        call.advance(20)
        call.send(3, at: 0)
        call.end()
        #expect(call.tape.packets.map(\.time) == [0, 20, 40, 60])
    }

    @Test func `timestamps that run ahead all the time gain ten seconds at most`() {
        var times = RecordingTimes(clockRate: 48_000)
        let begun = MonotonicTime(nanoseconds: 1_000_000_000)
        var last = TimeInterval.zero
        for packet in 0..<5000 {
            // Every other packet waited for the one before, and arrived half a second earlier.
            let arrival = begun + .milliseconds(Int64(packet * 20 - packet % 2 * 500))
            let time = times.time(of: RTPTimestamp(0).advanced(by: packet * 9 * 48_000), arrival: arrival)
            #expect(time >= last)
            last = time
        }
        #expect(last >= .seconds(100) && last <= .milliseconds(110_100), "\(last.seconds)")
    }

    @Test func `a publisher's clock that is fast by 100 ppm decides the times of two days`() {
        var times = RecordingTimes(clockRate: 48_000)
        let begun = MonotonicTime(nanoseconds: 1_000_000_000)
        var last = TimeInterval.zero
        for minute in 0...2880 {
            let timestamp = RTPTimestamp(0).advanced(by: minute * (60 * 48_000 + 288))
            last = times.time(of: timestamp, arrival: begun + .seconds(Int64(60 * minute)))
        }
        #expect(last == .milliseconds(2 * (86_400_000 + 8640)))
    }

    @Test func `a stream that restarts goes on at its next keyframe, with the time between`() {
        let call = RecordedCall()
        call.send(100, at: 0, keyframe: true)
        call.advance(40)
        call.send(101, at: 40)
        call.advance(5000)
        let asked = call.sources[0].keyframeRequests
        call.send(7, at: 777_000, epoch: 1)
        #expect(call.sources[0].keyframeRequests > asked)
        call.advance(40)
        call.send(8, at: 777_040, epoch: 1, keyframe: true)
        call.end()
        #expect(call.tape.marks == [100, 101, 8])
        #expect(call.tape.packets.map(\.time) == [0, 40, 5080])
        // The numbers have a gap, so that no broken frame is completed.
        #expect(call.tape.packets.map(\.number) == [0, 1, 3])
    }

    @Test func `without room in the sink, packets are dropped up to the next keyframe`() {
        let call = RecordedCall()
        call.send(0, at: 0, keyframe: true)
        call.advance(100)
        call.tape.isFull = true
        call.send(1, at: 40)
        call.advance(1100)
        call.tape.isFull = false
        let asked = call.sources[0].keyframeRequests
        call.send(2, at: 80)
        #expect(call.sources[0].keyframeRequests == asked + 1)
        call.send(3, at: 120, keyframe: true)
        call.end()
        #expect(call.tape.marks == [0, 3])
        #expect(call.tape.packets.map(\.time) == [0, 120])
        #expect(call.tape.end?.dropped == 1)
    }

    @Test func `no keyframe is asked for as long as the sink has no room, because viewers get them, too`() {
        let call = RecordedCall()
        call.send(0, at: 0, keyframe: true)
        call.advance(100)
        call.tape.isFull = true
        let asked = call.sources[0].keyframeRequests
        for number in 1..<500 {
            call.send(number, at: 40 * number, keyframe: number % 100 == 0)
            call.advance(40)
        }
        #expect(call.sources[0].keyframeRequests == asked)
        #expect(call.stream.layers.allSatisfy { !$0.isAwaited })
        call.tape.isFull = false
        call.send(500, at: 20_000)
        #expect(call.sources[0].keyframeRequests == asked + 1)
        call.send(501, at: 20_040, keyframe: true)
        call.end()
        #expect(call.tape.marks == [0, 501 & 0xff])
        #expect(call.tape.end?.dropped == 499)
    }

    @Test func `a gap that is not repaired ends at a keyframe, which is asked for until it comes`() {
        let call = RecordedCall()
        call.send(1, at: 40, keyframe: true)
        var asked = call.sources[0].keyframeRequests
        call.send(3, at: 120)
        call.advance(1000)
        #expect(call.sources[0].keyframeRequests == asked + 1)
        asked += 1
        call.advance(1000)
        call.send(4, at: 2000)
        #expect(call.sources[0].keyframeRequests == asked + 1)
        call.send(5, at: 2040, keyframe: true)
        call.send(6, at: 2080)
        call.end()
        #expect(call.tape.marks == [1, 5, 6])
        #expect(call.tape.packets.map(\.number) == [0, 2, 3])
        #expect(call.tape.packets.map(\.time) == [0, 2000, 2040])
        #expect(call.tape.end?.missing == 1)
    }

    @Test func `a gap that padding closes ends at a keyframe as well`() {
        let call = RecordedCall()
        call.send(1, at: 40, keyframe: true)
        call.send(3, at: 120, padding: true)
        call.send(4, at: 120)
        call.advance(2000)
        let asked = call.sources[0].keyframeRequests
        call.send(5, at: 2040)
        #expect(call.sources[0].keyframeRequests == asked + 1)
        call.send(6, at: 2080, keyframe: true)
        call.end()
        #expect(call.tape.marks == [1, 6])
    }

    @Test func `a gap that closes early, because too much waits, asks for a keyframe as well`() {
        let call = RecordedCall()
        call.send(0, at: 0, keyframe: true)
        call.advance(1000)
        let asked = call.sources[0].keyframeRequests
        for number in 2...(RecordingOrder.capacity + 2) { call.send(number, at: 1000) }
        #expect(call.sources[0].keyframeRequests == asked + 1)
    }

    @Test func `H.264 begins with its parameter sets, and asks again for those that came too late`() {
        let call = RecordedCall(.h264)
        let asked = call.sources[0].keyframeRequests
        // A slice of a keyframe, and the parameters that were sent before it.
        call.send(2, at: 40, unit: 5)
        call.send(1, at: 40, unit: 7)
        call.advance(1000)
        call.send(3, at: 1000)
        #expect(call.sources[0].keyframeRequests > asked)
        call.send(4, at: 1040, unit: 7)
        call.send(5, at: 1040, unit: 8)
        call.send(6, at: 1040, unit: 5)
        // Behind a gap, a publisher that sends them once goes on without them.
        call.send(8, at: 1120)
        call.advance(1500)
        call.send(9, at: 2600, unit: 5)
        call.end()
        // A delimiter ends the frame in front of the gap.
        #expect(call.tape.marks == [4, 5, 6, 0xf0, 9])
    }

    @Test(arguments: [Codec.vp8, .h264])
    func `a frame without an end is cut off before it fills the memory of a depayloader`(codec: Codec) {
        let call = RecordedCall(codec)
        call.send(0, at: 0, keyframe: true, unit: 7)
        var number = 1
        func fill(_ packets: Int, _ filling: Int) {
            for _ in 0..<packets {
                // Timestamps that change end nothing, either.
                call.send(number, at: number, filling: filling, marker: false)
                number += 1
            }
        }
        // Small packets take memory, too.
        for filling in [1000, 0] {
            let (before, asked) = (call.tape.packets.count, call.sources[0].keyframeRequests)
            fill(20_000, filling)
            call.advance(1100)
            let taken = call.tape.packets.dropFirst(before).reduce(0) { $0 + $1.payload.count + 512 }
            #expect(taken > 4_000_000 && taken < 4_500_000, "\(taken)")
            #expect(call.sources[0].keyframeRequests > asked)
            let last = call.tape.packets.last?.number ?? 0
            call.send(number, at: number, keyframe: true, unit: 7)
            number += 1
            call.advance(100)
            // A number is left out. GStreamer's depayloader keeps units of H.264 even so, up to a marker.
            let following = call.tape.packets.suffix(codec == .h264 ? 2 : 1)
            #expect(following.map(\.number) == (0..<following.count).map { last + 2 + $0 })
            #expect(!following.map(\.marker).contains(false))
            #expect(codec == .vp8 || following.first?.payload == [9, 0xf0])
        }
        call.end()
        #expect(call.tape.end?.missing == 0)
    }

    @Test func `video and audio of one publisher begin as far apart as they were captured`() {
        let clock = CaptureClock()
        let (video, audio) = (RecordedCall(.vp8, clock: clock), RecordedCall(.opus, clock: clock))
        // Captured at 5000 and 5125 of the publisher's clock; the video is 300 ms late.
        audio.send(0, at: 9125)
        video.advance(300)
        video.send(0, at: 1000, keyframe: true)
        audio.advance(1000)
        video.advance(1000)
        audio.report(wall: 6125, at: 10_125)
        video.report(wall: 6300, at: 2300)
        audio.end()
        video.end()
        let starts = [video, audio].compactMap { $0.tape.end?.start?.nanoseconds }
        #expect(starts.count == 2 && (124_999_000...125_001_000).contains(starts[1] - starts[0]), "\(starts)")
    }

    @Test(arguments: [-5000, 5000])
    func `a publisher's clock that steps between two streams moves no recording`(step: Int) {
        let clock = CaptureClock()
        let (first, second) = (RecordedCall(.opus, clock: clock), RecordedCall(.opus, clock: clock))
        let begun = first.loop.now
        first.send(0, at: 0)
        first.report(wall: 50_000, at: 0)
        second.advance(60_000)
        second.send(0, at: 0)
        second.report(wall: 110_000 + step, at: 0)
        first.end()
        second.end()
        #expect(first.tape.end?.start == begun && second.tape.end?.start == begun + .seconds(60))
    }

    @Test func `a publisher's clock that is impossible moves no recording`() {
        let call = RecordedCall(.opus)
        let begun = call.loop.now
        call.send(0, at: 60_000)
        call.report(wall: 5_000_000, at: 0)
        call.end()
        #expect(call.tape.end?.start == begun)
    }

    @Test func `an end of the stream ends the recording with all packets, once`() {
        let call = RecordedCall(.opus)
        call.send(0, at: 0, keyframe: true)
        call.send(2, at: 80)
        call.end()
        #expect(call.tape.marks == [0, 2])
        #expect(call.tape.end?.missing == 1)
        #expect(call.stream.isRecorded == false)
        #expect(call.loop.nextTimer == .never)
    }

    @Test func `a sink that has failed gets its end alone, and the stream goes on`() {
        let call = RecordedCall(.opus)
        let begun = call.loop.now
        call.send(0, at: 0, keyframe: true)
        call.send(2, at: 80)
        call.advance(1100)
        call.send(3, at: 120)
        #expect(call.stream.stopRecording())
        call.send(4, at: 160)
        call.advance(1000)
        #expect(call.tape.marks == [0, 2])
        #expect(call.tape.end == RecordingEnd(start: begun, missing: 1))
        #expect(!call.stream.stopRecording())
        #expect(call.stream.layers.allSatisfy { !$0.isWatched })
    }
}

/// The layers that a recording follows.
struct RecordedLayerTests {
    private func marks(_ call: RecordedCall, from first: Int) -> Set<Int> { Set(call.tape.marks.dropFirst(first)) }

    @Test func `a recording follows the highest layer, and the publisher may stop those between`() {
        let call = RecordedCall(layers: 3)
        var next = 0
        call.deliver([0, 1, 2], from: &next, milliseconds: 6000)
        #expect(call.tape.marks.first == 0)
        #expect(call.tape.marks.suffix(100).allSatisfy { $0 == 2 })
        #expect(call.sources[0].limits.last == [0, 2])
        #expect(call.tape.packets.map(\.time) == call.tape.packets.map(\.time).sorted())
    }

    @Test func `a layer that ends falls to a lower one at its keyframe, and rises when it delivers again`() {
        let call = RecordedCall(layers: 3)
        var next = 0
        call.deliver([0, 1, 2], from: &next, milliseconds: 4000)
        call.advance(100)
        var before = call.tape.packets.count
        call.deliver([0], from: &next, milliseconds: 3000)
        #expect(marks(call, from: before + 20) == [0])
        // All are asked for again.
        #expect(call.sources[0].limits.last == [0, 1, 2])
        before = call.tape.packets.count
        call.deliver([0, 1, 2], from: &next, milliseconds: 6000)
        #expect(call.tape.marks.suffix(50).allSatisfy { $0 == 2 })
        // The gap is as long as the layer was silent before others knew.
        let steps = zip(call.tape.packets, call.tape.packets.dropFirst()).map { $1.time - $0.time }
        #expect(steps.allSatisfy { $0 >= 0 && $0 <= 1000 }, "\(steps.max() ?? 0)")
        #expect(abs((call.tape.packets.last?.time ?? 0) - Double(next * 40)) < 100)
    }

    @Test func `spatial layers are recorded together, and no keyframe is asked for again`() {
        let call = RecordedCall(.vp9, layers: 3, isScalable: true)
        var number = 0
        for frame in 0..<125 {
            for layer in 0..<3 {
                call.send(number, at: 40 * frame, mark: layer, layer: layer, keyframe: frame == 0)
                number += 1
            }
            call.advance(40)
        }
        call.end()
        #expect(call.tape.marks == (0..<125).flatMap { _ in [0, 1, 2] })
        #expect(call.sources[0].keyframeRequests == 1)
    }

    @Test func `keyframes are asked for until one comes, also if there are layers`() {
        let call = RecordedCall(layers: 2)
        var next = 1
        // The first keyframes and their requests were lost.
        let asked = call.sources[0].keyframeRequests
        call.deliver([0], from: &next, milliseconds: 3000, keyframes: false)
        #expect(call.tape.packets.isEmpty)
        #expect(call.sources[0].keyframeRequests >= asked + 2)
        call.deliver([0], from: &next, milliseconds: 1000)
        call.end()
        #expect(call.tape.packets.count == 25)
    }

    @Test func `a stream whose higher layers never come is recorded from the start`() {
        let call = RecordedCall(layers: 3)
        var next = 0
        call.deliver([0], from: &next, milliseconds: 1000)
        call.end()
        #expect(call.tape.packets.count == 25)
    }

    @Test func `nobody else than the recording watches: the publisher sends the highest layer all the same`() {
        let call = RecordedCall(layers: 2)
        var next = 0
        call.deliver([0, 1], from: &next, milliseconds: 20_000)
        #expect(call.sources[0].limits.last??.contains(1) ?? true)
        #expect(call.tape.marks.suffix(400).allSatisfy { $0 == 1 })
    }
}

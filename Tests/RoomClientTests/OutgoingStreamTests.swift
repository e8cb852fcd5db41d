import MediaGraph
import MediaNodes
import RoomProtocol
import Synchronization
import Testing

@testable import RoomClient

@Suite struct OutgoingStreamTests {
    private final class Input: StreamInput {
        private let count = Atomic<Int>(0)
        var requests: Int { count.load(ordering: .relaxed) }
        func requestKeyframe() { count.add(1, ordering: .relaxed) }
        func limitRate(bitsPerSecond: Int) {}
    }

    /// Passes frames of 25 per second.
    private func take(
        _ stream: OutgoingStream, _ input: Input, _ frames: ClosedRange<Int>, keyframe: Int? = nil
    ) {
        for index in frames {
            stream.take(
                RTPBatch(
                    captureTime: MediaTime(nanoseconds: UInt64(index) * 40_000_000), rtpTimestamp: UInt32(index) * 3600,
                    isKeyframe: index == keyframe), from: input)
        }
    }

    @Test func `a lost request for a keyframe is repeated until one comes`() {
        let (input, stream) = (Input(), OutgoingStream(.vp8))
        stream.begin(input)
        take(stream, input, 0...0, keyframe: 0)
        stream.show(input)
        #expect(input.requests == 1, "frames passed before")
        take(stream, input, 1...13)
        #expect(input.requests == 1, "the first request may still take effect")
        take(stream, input, 14...64)
        #expect(input.requests == 5, "twice a second")
        take(stream, input, 65...200, keyframe: 65)
        #expect(input.requests == 5, "it has come")
    }

    @Test func `a stream that no room shows asks for no keyframe`() {
        let (input, stream) = (Input(), OutgoingStream(.vp8))
        stream.begin(input)
        take(stream, input, 0...100)
        #expect(input.requests == 0)
    }

    /// The capture times of the frames that a room gets, in frames.
    private func numbers(of track: any OutgoingTrack) -> Seen {
        let seen = Seen()
        track.connect(
            TrackReceiver(take: { seen.add(Int($0.captureTime.nanoseconds / 40_000_000)) }, stateChanged: {}))
        return seen
    }

    @Test func `an input that replaces another one feeds the stream once it is shown`() {
        let (old, new, stream) = (Input(), Input(), OutgoingStream(.vp8))
        let track = stream.track()
        let seen = numbers(of: track)
        stream.begin(old)
        stream.show(old)
        take(stream, old, 0...2, keyframe: 0)
        stream.begin(new)
        take(stream, new, 1...2, keyframe: 1)
        take(stream, old, 3...3)
        #expect(seen.all == [0, 1, 2, 3], "it is not shown yet")
        stream.show(new)
        #expect(new.requests == 1)
        take(stream, old, 4...5, keyframe: 4)
        take(stream, new, 4...6, keyframe: 5)
        #expect(seen.all == [0, 1, 2, 3, 5, 6])
        stream.pause(old)
        take(stream, new, 7...7)
        #expect(seen.all.last == 7)
        #expect(stream.isFed)
        stream.pause(new)
        take(stream, new, 8...8, keyframe: 8)
        #expect(seen.all.last == 7)
        #expect(!stream.isFed)
        track.disconnect()
    }

    @Test func `an input whose replacement has failed feeds the stream again`() {
        let (old, new, stream) = (Input(), Input(), OutgoingStream(.vp8))
        let track = stream.track()
        let seen = numbers(of: track)
        stream.begin(old)
        stream.show(old)
        take(stream, old, 0...1, keyframe: 0)
        stream.begin(new)
        take(stream, new, 1...1)
        stream.show(new)
        stream.pause(new)
        #expect(old.requests == 1)
        take(stream, old, 2...4, keyframe: 3)
        #expect(seen.all == [0, 1, 3, 4])
        track.disconnect()
    }

    @Test func `a publication that comes late shows its own input, and not a newer one`() {
        let (old, late, new, stream) = (Input(), Input(), Input(), OutgoingStream(.vp8))
        let track = stream.track()
        let seen = numbers(of: track)
        stream.begin(old)
        stream.show(old)
        take(stream, old, 0...1, keyframe: 0)
        stream.begin(late)
        stream.pause(late)
        stream.begin(new)
        stream.show(late)
        take(stream, old, 2...3)
        #expect(seen.all == [0, 1, 2, 3], "the new input has no frame yet")
        stream.show(new)
        take(stream, new, 4...4, keyframe: 4)
        #expect(seen.all == [0, 1, 2, 3, 4])
        stream.show(old)
        take(stream, new, 5...5)
        #expect(seen.all.last == 5, "the newer one goes on")
        track.disconnect()
    }
}

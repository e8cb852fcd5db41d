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
    }

    /// Passes frames of 25 per second.
    private func take(_ stream: OutgoingStream, _ frames: ClosedRange<Int>, keyframe: Int? = nil) {
        for index in frames {
            stream.take(
                RTPBatch(
                    captureTime: MediaTime(nanoseconds: UInt64(index) * 40_000_000), rtpTimestamp: UInt32(index) * 3600,
                    isKeyframe: index == keyframe))
        }
    }

    @Test func `a lost request for a keyframe is repeated until one comes`() {
        let (input, stream) = (Input(), OutgoingStream(.vp8))
        stream.begin(input)
        take(stream, 0...0, keyframe: 0)
        stream.show()
        #expect(input.requests == 1, "frames passed before")
        take(stream, 1...13)
        #expect(input.requests == 1, "the first request may still take effect")
        take(stream, 14...64)
        #expect(input.requests == 5, "twice a second")
        take(stream, 65...200, keyframe: 65)
        #expect(input.requests == 5, "it has come")
    }

    @Test func `a stream that no room shows asks for no keyframe`() {
        let (input, stream) = (Input(), OutgoingStream(.vp8))
        stream.begin(input)
        take(stream, 0...100)
        #expect(input.requests == 0)
    }
}

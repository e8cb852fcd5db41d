import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct RisingTimesTests {
        @Test("Times that the jitter buffer lowers rise until it has caught up")
        func back() {
            var times = RisingTimes()
            let second: UInt64 = 1_000_000_000
            #expect(times.next(3000, at: 10 * second) == 10 * second)
            #expect(times.next(6000, at: 9 * second) == 10 * second + 1_000_000)
            // The second packet of the same frame.
            #expect(times.next(6000, at: 9 * second) == 10 * second + 1_000_000)
            #expect(times.next(9000, at: 11 * second) == 11 * second)
        }

        @Test("Reordered frames keep their times, and RTP timestamps wrap around and restart")
        func order() {
            var times = RisingTimes()
            #expect(times.next(.max - 2999, at: 100_000_000) == 100_000_000)
            #expect(times.next(6000, at: 200_000_000) == 200_000_000)
            #expect(times.next(3000, at: 166_000_000) == 166_000_000)
            #expect(times.next(.max - 100_000, at: 150_000_000) == 201_000_000)
            #expect(times.next(.max - 97_000, at: 160_000_000) == 202_000_000)
        }

        @Test("Times stay near those of the jitter buffer, though a sender numbers far more frames than it can have")
        func flood() {
            var times = RisingTimes()
            for frame in 0..<UInt32(100_000) {
                let measured = UInt64(frame) * 100_000
                let time = times.next(frame, at: measured)
                #expect(time >= measured && time <= measured + 3_000_000_000)
            }
        }

        @Test("Frames of seconds that arrive at once have rising times", arguments: VideoCodec.allCases)
        func burst(codec: VideoCodec) async throws {
            let loopback = try await Loopback(codec: codec, frames: 90) { _, _ in }
            try await loopback.start()
            await eventually("the end") { loopback.hasEnded }
            let input = try #require(loopback.receiver.rtpInput("in"))
            for batch in loopback.sent.all { input.push(batch.bytes, ends: batch.ends) }
            await eventually("the last frame") { loopback.rendered.count >= loopback.sent.count }
            await loopback.stop()
            let times = loopback.rendered.all.map(\.captureTime)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
        }
    }
}

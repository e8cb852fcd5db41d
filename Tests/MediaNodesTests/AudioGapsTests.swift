import GStreamerKit
import MediaGraph
import Synchronization
import TestSupport
import Testing

@testable import MediaNodes

struct AudioGapsTests {
    private let piece: UInt64 = 10_000_000

    /// The buffers before which there is a gap. Times are in milliseconds.
    private func gaps(_ times: [UInt64]) -> [Int] {
        var gaps = AudioGaps()
        return times.indices.filter { gaps.isBefore(times[$0] * 1_000_000, lasting: piece) }
    }

    @Test func `a gap is before a buffer that begins late, and once`() {
        #expect(gaps([0, 10, 20, 40, 50, 60]) == [3])
        #expect(gaps([0, 10, 100, 110]) == [2])
        #expect(gaps([500, 510, 520]) == [])
    }

    @Test func `jitter and drift are no gaps`() {
        #expect(gaps([0, 14, 20, 34, 40, 54]) == [])
        #expect(gaps((0..<100).map { $0 * 11 }) == [])
        // Late ones in turn do not push the time ahead.
        #expect(gaps([0, 16, 20, 36, 40, 56]) == [1])
    }

    @Test(arguments: [1, 2, 3, 7]) func `packets of Opus behind a gap keep their distance to those before`(
        lost: Int
    ) async throws {
        let tone = try Element("audiotestsrc", ["num-buffers": 100, "samplesperbuffer": 480])
        let format = try Element.filter("audio/x-raw,format=S16LE,layout=interleaved,rate=48000,channels=2")
        let encoder = try Element("opusenc", ["frame-size": "20"])
        let sink = try Element("fakesink", ["sync": false, "async": false])
        let (times, isOver) = (Collected<UInt64>(), AtomicBool())
        let pipeline = Pipeline { message in
            if case .endOfStream = message { isOver.raise() }
        }
        for element in [tone, format, encoder, sink] { pipeline.add(element) }
        for (from, to) in [(tone, format), (format, encoder), (encoder, sink)] { try from.link(to) }
        let count = Mutex(0)
        _ = tone.source.onBuffer { _ in
            let number = count.withLock { count in
                defer { count += 1 }
                return count
            }
            return (30..<(30 + lost)).contains(number) ? .drop : .pass
        }
        AudioGaps.follow(at: format.source, by: encoder)
        _ = sink.sink.watchBuffers { packet in if let time = packet.timestamp { times.append(time) } }
        #expect(pipeline.play())
        await eventually("the end") { isOver.value }
        pipeline.stop()
        // The first one may begin before the segment.
        let last = try #require(times.all.last)
        #expect(last >= 960_000_000 && last <= 1_000_000_000, "\(last)")
    }
}

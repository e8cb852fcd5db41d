import Foundation
import MediaGraph
import MediaNodes
import RTP
import RoomProtocol
import TestSupport
import Testing

@testable import RoomClient

/// The graph that plays, with real audio, and a function in the place of the loudspeaker.
@Suite(.timeLimit(.minutes(1))) struct SoundGraphTests {
    /// The Opus packets of a tone, at least so many.
    private func packets(_ frequency: Double, _ count: Int) async throws -> [[UInt8]] {
        let batches = Collected<RTPBatch>()
        var bindings = NodeBindings()
        bindings.rtpOutputs["out"] = { batches.append($0) }
        let graph = MediaGraph {
            Chain {
                Node(
                    "element:audiotestsrc", name: "tone",
                    settings: ["freq": .number(frequency), "volume": 0.25, "num-buffers": .integer(count)])
                // A bare element, because the encoder node has a queue, which drops audio on a busy machine.
                Node.element("opusenc", ["frame-size": "20"])
                Node("rtp-output", name: "out")
            }
        }
        let pipeline = try await MediaPipeline(graph, bindings: bindings)
        try await pipeline.begin()
        await eventually("\(count) packets") { batches.count >= count }
        await pipeline.stop()
        return batches.all.map(\.bytes)
    }

    /// The packet with another timestamp.
    private func moved(_ packet: [UInt8], by ticks: UInt32) -> [UInt8] {
        let time = (4..<8).reduce(UInt32(0)) { $0 << 8 | UInt32(packet[$1]) } &+ ticks
        return Array(packet[..<4]) + (0..<4).map { UInt8(truncatingIfNeeded: time >> (24 - 8 * $0)) } + packet[8...]
    }

    private func timestamp(_ packet: [UInt8]) -> UInt32 { (4..<8).reduce(0) { $0 << 8 | UInt32(packet[$1]) } }

    /// The amplitude of a frequency, 0...1.
    private func amplitude(_ frequency: Double, in chunk: AudioChunk) -> Double {
        let left = stride(from: 0, to: chunk.samples.count, by: 2).map { Double(chunk.samples[$0]) / 32_768 }
        let (real, imaginary) = left.enumerated().reduce((0.0, 0.0)) { sum, sample in
            let angle = 2 * Double.pi * frequency * Double(sample.offset) / 48_000
            return (sum.0 + sample.element * cos(angle), sum.1 + sample.element * sin(angle))
        }
        return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(max(left.count, 1))
    }

    /// Plays streams one after another in the slots of one graph, with pauses between packets. Returns the mix, and when each
    /// stream began.
    private func play(_ streams: [[[UInt8]]], pauses: [Int: Duration] = [:]) async throws -> (
        chunks: [AudioChunk], began: [MediaTime]
    ) {
        let heard = Collected<AudioChunk>()
        let notices = Collected<(number: Int, notice: SoundOutput.Notice)>()
        var bindings = NodeBindings()
        bindings.audio[SoundGraph.speaker] = { heard.append($0) }
        let made = Collected<SoundRunner>()
        let output = SoundOutput(
            launch: { [bindings] slots, _, previous, post in
                let runner = SoundRunner(
                    SoundGraph.make(slots: slots, isAudible: true, end: .sound(SoundGraph.speaker)), slots: slots,
                    bindings: bindings, after: previous, post: post)
                made.append(runner)
                return runner
            }, post: { notices.append(($0, $1)) }, now: { .zero }, schedule: { _, _ in })
        let room = SoundRoom(loudspeaker: RoomLoudspeaker { _ in }) { _ in }
        var began: [MediaTime] = []
        var last: SlotSink?
        for (id, packets) in streams.enumerated() {
            last?.end()
            let stream = IncomingStream(
                id: id, server: try ServerAddress("ws://127.0.0.1:5"), participant: "ada", codec: .opus,
                payloadType: 96, connectStarted: .zero)
            let sink = SlotSink(stream, in: output, room, RoomLipSync())
            sink.begin(stream)
            if last == nil {
                await eventually("the graph runs") { notices.count > 0 }
                for (number, notice) in notices.all { output.handle(notice, of: number) }
            }
            last = sink
            // At the pace of the audio, because the jitter buffer measures arrivals.
            var start = ContinuousClock.now
            began.append(MediaTime(nanoseconds: UInt64(DispatchTime.now().uptimeNanoseconds)))
            for (index, packet) in packets.enumerated() {
                if let pause = pauses[index] {
                    start += pause
                    try await Task.sleep(for: pause)
                }
                sink.receive(packet.span)
                try await Task.sleep(until: start + .milliseconds(20 * (index + 1)))
            }
        }
        // The loudspeaker is behind.
        let end = MediaTime(nanoseconds: UInt64(DispatchTime.now().uptimeNanoseconds))
        await eventually("the end") { heard.all.last.map { $0.captureTime.seconds(since: end) > 0 } ?? false }
        output.close(room)
        await made.all[0].stop()
        #expect(made.count == 1)
        withExtendedLifetime(last) {}
        return (heard.all, began)
    }

    @Test(arguments: [24_000, 172_800_000, 2_147_483_648, 4_294_919_296] as [UInt32])
    func `a slot changes to another stream in time, in one graph, and the former one is silent`(jump: UInt32)
        async throws
    {
        // 10 ms have whole periods of both.
        let (low, high) = (500.0, 2000.0)
        // A jitter buffer follows the clock of the first two seconds faster.
        let first = try await packets(low, 130)
        let end = timestamp(first[first.count - 1])
        var second = try await packets(high, 50)
        second = second.map { moved($0, by: end &+ jump &- timestamp(second[0])) }
        let (chunks, began) = try await play([first, second])
        let change = try #require(chunks.firstIndex { amplitude(high, in: $0) > 0.1 })
        #expect(chunks[..<change].count { amplitude(low, in: $0) > 0.1 } > 20)
        // A packet later, nothing of the former stream is left in the decoder.
        #expect(chunks[min(change + 3, chunks.count)...].allSatisfy { amplitude(low, in: $0) < 0.02 })
        // By the time of its timestamp, which is not that of a jump, nor is it late.
        let delay = chunks[change].captureTime.seconds(since: began[1])
        #expect(delay > -0.05 && delay < 0.2, "\(delay) s")
    }

    @Test func `after a pause of its sender, a stream has no hole`() async throws {
        let frequency = 500.0
        // 60 ms.
        var packets = try await packets(frequency, 190)
        packets = packets.enumerated().map { $0.offset < 60 ? $0.element : moved($0.element, by: 2880) }
        let (chunks, _) = try await play([packets], pauses: [60: .milliseconds(60)])
        let loud = chunks.indices.filter { amplitude(frequency, in: chunks[$0]) > 0.1 }
        let (first, last) = (try #require(loud.first), try #require(loud.last))
        let silent = (first...last).filter { !loud.contains($0) }.map { Double($0 - first) / 100 }
        #expect(loud.count > 250 && silent.count { 1...1.6 ~= $0 } >= 3, "silence at \(silent) s")
        // The pause began 1.2 s after the first packet. A second later, a mixer that makes up for it would be silent.
        #expect(silent.allSatisfy { !(1.9...2.7 ~= $0) }, "silence at \(silent) s")
    }
}

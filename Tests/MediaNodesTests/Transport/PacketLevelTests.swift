import MediaGraph
import TestSupport
import Testing

@testable import MediaNodes

extension MediaNodesTests {
    /// The levels of audio, from the encoder to the packets.
    @Suite struct PacketLevelTests {
        @Test func `a level is that of the audio since the packet before, and stays without any`() {
            func level(_ samples: [Int16], of meter: inout PacketLevel) -> UInt8 {
                _ = samples.withUnsafeBytes { meter.read($0.bytes) }
                return meter.next()
            }
            var meter = PacketLevel()
            #expect(meter.next() == 127)
            let square = (0..<1920).map { $0 % 2 == 0 ? Int16.max : .min }
            #expect(level(square, of: &meter) == 0)
            #expect(level(square.map { $0 / 10 }, of: &meter) == 20)
            #expect(meter.next() == 20)
            #expect(level([Int16](repeating: 0, count: 1920), of: &meter) == 127)
            #expect(level([1, 0, -1], of: &meter) == 92)
        }

        @Test func `each packet of Opus carries the level of its audio`() async throws {
            let levels = Collected<UInt8?>()
            var bindings = NodeBindings()
            bindings.rtpOutputs["out"] = { levels.append($0.audioLevel) }
            let graph = MediaGraph {
                Chain {
                    // A sine has 3 dB less than its amplitude.
                    Node("element:audiotestsrc", name: "tone", settings: ["volume": 0.1414, "num-buffers": 60])
                    Node.opusEncoder()
                    Node.rtpOutput("out")
                }
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            await eventually("packets") { levels.count >= 40 }
            await pipeline.stop()
            #expect(levels.all.allSatisfy { $0.map { (19...21).contains($0) } ?? false })
        }
    }
}

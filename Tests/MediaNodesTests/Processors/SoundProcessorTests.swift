import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct SoundProcessorTests {
        private func tone(_ nodes: Node...) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node.testPattern("pattern")
                    Node("null")
                }
                Chain(from: "pattern", port: "audio") {
                    Node("level", name: "before", settings: ["interval": 0.02])
                    for node in nodes { node }
                    Node("level", name: "after", settings: ["interval": 0.02])
                    Node.sound("ear")
                }
            }
        }

        @Test("Volume and mute change live, and the level meters show it")
        func volume() async throws {
            let watched = try await Watched(tone(Node("volume", settings: ["volume": 0.5])))
            try await watched.pipeline.start()
            func change() -> Double {
                let levels = watched.pipeline.statistics.levels
                guard let before = levels["before"]?.first, let after = levels["after"]?.first,
                    before.rootMeanSquare > -60
                else { return .nan }
                return after.rootMeanSquare - before.rootMeanSquare
            }
            // Between two beeps, both meters measure the same tone.
            await eventually("half the amplitude") { abs(change() + 6.02) < 0.1 }
            try await watched.set("volume", "volume", 2.0)
            await eventually("twice the amplitude") { abs(change() - 6.02) < 0.1 }
            try await watched.set("volume", "mute", true)
            await eventually("silence") { watched.pipeline.statistics.levels["after"]?.first?.peak == -120 }
            try await watched.set("volume", "mute", false)
            await eventually("sound again") { abs(change() - 6.02) < 0.1 }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }

        @Test func `the volume of a mixer's input changes live`() async throws {
            let watched = try await Watched(tone(.audioMixer("mix")))
            try await watched.pipeline.start()
            func peak() -> Double { watched.pipeline.statistics.levels["after"]?.first?.peak ?? -120 }
            await eventually("sound") { peak() > -60 }
            watched.pipeline.setVolume(1, isMuted: true, ofInput: 1, in: "mix")
            await eventually("silence") { peak() == -120 }
            watched.pipeline.setVolume(1, isMuted: false, ofInput: 1, in: "mix")
            await eventually("sound again") { peak() > -60 }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }

        @Test("A level is that of its interval, channel by channel: -3 dB for a full sine, 0 for a full square")
        func level() {
            var meter = LevelMeter(interval: 0.01)
            #expect(meter.channels == [.silence, .silence])
            // A square wave on the left, a quarter of its amplitude on the right.
            let samples = (0..<480).flatMap { moment -> [Int16] in
                let isUp = moment / 24 % 2 == 0
                return [isUp ? 32_767 : -32_768, isUp ? 8_192 : -8_192]
            }
            samples.withUnsafeBytes { meter.read($0.bytes) }
            #expect(abs(meter.channels[0].rootMeanSquare) < 0.01 && abs(meter.channels[0].peak) < 0.01)
            #expect(abs(meter.channels[1].rootMeanSquare + 12.04) < 0.01)
            // Half an interval changes nothing; the other half makes a new value.
            let silence = [Int16](repeating: 0, count: 480)
            silence.withUnsafeBytes { meter.read($0.bytes) }
            #expect(abs(meter.channels[0].peak) < 0.01)
            silence.withUnsafeBytes { meter.read($0.bytes) }
            #expect(meter.channels == [.silence, .silence])
        }
    }
}

import Foundation
import MediaGraph
import MediaNodes
import Synchronization
import TestSupport
import Testing

extension GuestTests {
    /// A sound card that is pulled out and plugged in again, by ALSA. Its device 1 hears the audio that plays on device 0.
    @Suite struct SoundCardTests {
        private static let driver = "/sys/bus/platform/drivers/snd_aloop"

        /// Waits until the card's users have closed it.
        private func unbind() throws -> Process {
            try Program.start("sh", ["-c", "echo snd_aloop.0 > \(Self.driver)/unbind"])
        }

        @Test func `a microphone that is unplugged is silent, and returns in the same stream`() async throws {
            let card = try Driver("snd-aloop")
            defer { card.unload() }
            let chunks = Collected<MediaTime>()
            let events = Collected<MediaEvent>()
            let graph = MediaGraph {
                Chain {
                    Node.microphone(device: "hw:Loopback,1")
                    Node.sound("ear")
                }
            }
            var bindings = NodeBindings()
            bindings.events = { events.append($0) }
            bindings.audio["ear"] = { chunks.append($0.captureTime) }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            func states() -> [String] {
                events.all.compactMap { event in
                    switch event {
                    case .deviceLost: "lost"
                    case .deviceReturned: "returned"
                    case .failed(let error): "failed \(error)"
                    default: nil
                    }
                }
            }
            await eventually(within: 60, "sound") { chunks.count > 50 }
            for round in 1...3 {
                let removal = try unbind()
                await eventually(within: 60, "loss \(round)") { states().count == 2 * round - 1 }
                removal.waitUntilExit()
                let seen = chunks.count
                await eventually(within: 60, "silence") { chunks.count > seen + 50 }
                try Program.run("sh", ["-c", "echo snd_aloop.0 > \(Self.driver)/bind"])
                await eventually(within: 60, "return \(round)") { states().count == 2 * round }
            }
            #expect(states() == (0..<3).flatMap { _ in ["lost", "returned"] })
            #expect(zip(chunks.all, chunks.all.dropFirst()).allSatisfy { $0 < $1 })
            await pipeline.stop()
        }

        @Test func `a loudspeaker that is unplugged stops nothing, and plays again`() async throws {
            let card = try Driver("snd-aloop")
            defer { card.unload() }
            let heard = Collected<(time: MediaTime, level: Double)>()
            let taken = Collected<MediaTime>()
            let events = Collected<MediaEvent>()
            let graph = MediaGraph {
                Chain {
                    Node.testPattern(width: 64, height: 64, framesPerSecond: 5)
                    Node.null()
                }
                Chain(from: "test-pattern", port: "audio") {
                    Tee { Node.sound("taken") }
                    Node.speaker(device: "hw:Loopback,0")
                }
                Chain {
                    Node.microphone(device: "hw:Loopback,1")
                    Node.sound("ear")
                }
            }
            var bindings = NodeBindings()
            bindings.events = { events.append($0) }
            bindings.audio["ear"] = { heard.append(($0.captureTime, $0.level)) }
            bindings.audio["taken"] = { taken.append($0.captureTime) }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            func states() -> [String] {
                events.all.compactMap { event in
                    switch event {
                    case .deviceLost("speaker", let cause): "lost \(cause.code)"
                    case .deviceReturned("speaker"): "returned"
                    case .failed(let error): "failed \(error)"
                    default: nil
                    }
                }
            }
            /// The number of loud chunks: the tone beeps once a second.
            func beeps() -> Int { heard.all.count { $0.level > -40 } }
            await eventually(
                within: 60,
                "the tone: \(states()), \(heard.count) chunks up to \(heard.all.map(\.level).max() ?? 0) dB, \(pipeline.statistics)"
            ) { beeps() > 10 }
            for round in 1...3 {
                let removal = try unbind()
                await eventually(within: 60, "loss \(round)") { states().count == 2 * round - 1 }
                removal.waitUntilExit()
                let count = taken.count
                await eventually(within: 60, "audio that is taken") { taken.count > count + 50 }
                try Program.run("sh", ["-c", "echo snd_aloop.0 > \(Self.driver)/bind"])
                await eventually(within: 60, "return \(round)") { states().count == 2 * round }
                let loud = beeps()
                await eventually(within: 60, "the tone after return \(round)") { beeps() > loud + 10 }
            }
            #expect(states() == (0..<3).flatMap { _ in ["lost speaker.lost", "returned"] })
            await pipeline.stop()
        }
    }
}

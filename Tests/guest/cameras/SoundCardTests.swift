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
            let events = Collected<MediaEvent>()
            let graph = MediaGraph {
                // The guest is too slow for the tone of a test pattern, which comes late and is not played.
                Chain {
                    Node.element("audiotestsrc", ["is-live": true, "samplesperbuffer": 4800])
                    Node.speaker(device: "hw:Loopback,0")
                }
                Chain {
                    Node.microphone(device: "hw:Loopback,1")
                    Node.null("ear")
                }
            }
            var bindings = NodeBindings()
            bindings.events = { events.append($0) }
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
            /// Seconds of the tone that the other side of the loop has heard, and of audio that the node has taken.
            func heard() -> Double { pipeline.statistics.audioRenderers["ear"]?.secondsAboveSilence ?? 0 }
            func taken() -> Double { pipeline.statistics.audioRenderers["speaker"]?.secondsRendered ?? 0 }
            await eventually(within: 60, "the tone: \(states()), \(pipeline.statistics.audioRenderers)") { heard() > 1 }
            for round in 1...3 {
                let removal = try unbind()
                await eventually(within: 60, "loss \(round)") { states().count == 2 * round - 1 }
                removal.waitUntilExit()
                let before = taken()
                await eventually(within: 60, "audio that is taken") { taken() > before + 1 }
                try Program.run("sh", ["-c", "echo snd_aloop.0 > \(Self.driver)/bind"])
                await eventually(within: 60, "return \(round)") { states().count == 2 * round }
                let silence = heard()
                await eventually(within: 60, "the tone after return \(round)") { heard() > silence + 1 }
            }
            #expect(states() == (0..<3).flatMap { _ in ["lost speaker.lost", "returned"] })
            await pipeline.stop()
        }
    }
}

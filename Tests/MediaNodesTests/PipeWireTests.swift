import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaNodesTests {
    /// PipeWire; see ../fixtures/pipewire_server.py. Each test has a process of its own: after a process has waited for
    /// a node in vain, its pipewiresrc keeps its first server until the process ends.
    @Suite struct PipeWireTests {
        @Test("A PipeWire node is captured by number and by name; a missing one times out with an error")
        func screen() async {
            await #expect(processExitsWith: .success) { try await PipeWireRuns.screen() }
        }

        @Test("PipeWire's own microphone is read; a missing one times out with an error")
        func microphone() async {
            await #expect(processExitsWith: .success) { try await PipeWireRuns.microphone() }
        }
    }
}

private enum PipeWireRuns {
    static func screen() async throws {
        let fixture = try Fixture.pipeWireServer()
        let environment = EnvironmentOverride(fixture.answer.environment.mapValues { $0 })
        defer { withExtendedLifetime(environment) {} }
        let node = fixture.answer.screen
        for (name, width) in [("\(node.id)", nil), (node.name, 100)] as [(String, Int?)] {
            var settings: [String: SettingValue] = ["pipewire-node": .text(name)]
            if let width {
                settings["x"] = 20
                settings["width"] = .integer(width)
            }
            let seen = Seen()
            let pipeline = try await MediaPipeline(watchingScreen(settings), seen: seen)
            try await pipeline.start()
            await eventually("pictures") { seen.pictures.count > 20 }
            await pipeline.stop()
            #expect(seen.pictures.all.allSatisfy { $0.width == width ?? 320 && $0.height == 240 })
            #expect(seen.failures.isEmpty)
        }
        let start = ContinuousClock.now
        #expect(await failure(of: watchingScreen(["pipewire-node": "9999"]))?.code == "screen.unavailable")
        #expect(ContinuousClock.now - start < .seconds(5))
    }

    static func microphone() async throws {
        let fixture = try Fixture.pipeWireServer()
        let environment = EnvironmentOverride(fixture.answer.environment.mapValues { $0 })
        defer { withExtendedLifetime(environment) {} }
        func listening(_ settings: [String: SettingValue]) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node("microphone", settings: settings.merging(["system": "pipewire"]) { $1 })
                    Node.sound("ear")
                }
            }
        }
        let seen = Seen()
        let listener = try await MediaPipeline(listening([:]), seen: seen)
        try await listener.start()
        await eventually("sound") { seen.sound.count > 20 }
        await listener.stop()
        // Timestamps are the beginnings of the pieces, without a gap. PipeWire stamps pieces when they arrive, and the
        // server makes none while the machine is frozen, so this judges the median interval.
        let sound = seen.sound.all.dropFirst(5)
        let gaps = zip(sound, sound.dropFirst()).map {
            $1.captureTime.seconds(since: $0.captureTime) - $0.seconds
        }
        #expect(abs(gaps.median ?? 1) < 0.002, "\(gaps)")
        #expect(zip(sound, sound.dropFirst()).allSatisfy { $1.captureTime.nanoseconds > $0.captureTime.nanoseconds })
        let start = ContinuousClock.now
        #expect(await failure(of: listening(["device": "nothing", "away": "end"]))?.code == "microphone.absent")
        #expect(ContinuousClock.now - start < .seconds(5))
    }
}

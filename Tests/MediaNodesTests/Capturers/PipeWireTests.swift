import Glibc
import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import GStreamerKit
@testable import MediaNodes

extension MediaNodesTests {
    /// PipeWire; see ../fixtures/pipewire_server.py. Each test has a process of its own: after a process has waited for
    /// a node in vain, its pipewiresrc keeps its first server until the process ends.
    @Suite struct PipeWireTests {
        @Test("A PipeWire node is captured by number and by name; a missing one times out with an error")
        func screen() async {
            await #expect(processExitsWith: .success) { try await PipeWireRuns.screen() }
        }

        @Test("A screen that the desktop's portal offers is captured; one that the user refuses is an error")
        func portal() async {
            await #expect(processExitsWith: .success) { try await PipeWireRuns.portal() }
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

    static func portal() async throws {
        do {
            let fixture = try Fixture.pipeWireServer("--portal", "choose")
            let bus = try #require(fixture.answer.environment["DBUS_SESSION_BUS_ADDRESS"])
            // PipeWire is reached by the portal's descriptor alone.
            let screen = try await SharedScreen.choose(on: .address(bus))
            let descriptor = screen.portal.descriptor
            #expect(screen.size.map { [$0.width, $0.height] } == [320, 240])
            let seen = Collected<[Int]>()
            let pipeline = try await MediaPipeline {
                Screen(screen) >>> Frames { seen.append([$0.width, $0.height]) }
            }
            try await pipeline.start()
            await eventually("pictures") { seen.count > 20 }
            await pipeline.stop()
            #expect(seen.all.allSatisfy { $0 == [320, 240] })
            #expect(fcntl(descriptor, F_GETFD) >= 0)
        }
        let fixture = try Fixture.pipeWireServer("--portal", "refuse")
        let bus = try #require(fixture.answer.environment["DBUS_SESSION_BUS_ADDRESS"])
        func code(_ bus: String) async -> String? {
            do throws(MediaError) {
                _ = try await SharedScreen.choose(on: .address(bus))
                return nil
            } catch {
                return error.code
            }
        }
        #expect(await code(bus) == "screen.refused")
        #expect(await code("unix:path=/nowhere") == "screen.unavailable")
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

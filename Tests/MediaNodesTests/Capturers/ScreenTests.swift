import Glibc
import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

func watchingScreen(_ settings: [String: SettingValue]) -> MediaGraph {
    MediaGraph {
        Chain {
            Node("screen", settings: settings)
            Node.frames("view")
        }
    }
}

extension MediaNodesTests {
    /// Screens of Xvfb; see ../fixtures/display.py.
    @Suite struct ScreenTests {
        private func watching(_ settings: [String: SettingValue]) -> MediaGraph { watchingScreen(settings) }

        private func run(_ settings: [String: SettingValue], _ seen: Seen, until isEnough: () -> Bool) async throws {
            let pipeline = try await MediaPipeline(watching(settings), seen: seen)
            try await pipeline.start()
            await eventually("enough frames", isEnough)
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
        }

        @Test("The whole screen, a region and one window are captured, each in its size and at the requested rate")
        func parts() async throws {
            let fixture = try Fixture.display("--size", "640x360", "--window", "600x340")
            let display = SettingValue.text(fixture.answer.display)
            let whole = Seen()
            try await run(["display": display, "fps": 20], whole) { whole.flashes.count >= 2 }
            #expect(whole.pictures.all.allSatisfy { $0.width == 640 && $0.height == 360 })
            // A busy machine misses frames, so the median interval shows the rate.
            let times = whole.pictures.all.map(\.time)
            let distance = try #require(zip(times, times.dropFirst()).map { $1.milliseconds(since: $0) }.median)
            #expect(abs(distance - 50) < 5, "\(distance) ms from frame to frame")

            let window = Seen()
            try await run(["display": display, "window": "moving pic"], window) { window.flashes.count >= 1 }
            #expect(window.pictures.all.allSatisfy { $0.width == 600 && $0.height == 340 })

            let part = Seen()
            let region: [String: SettingValue] = ["x": 40, "y": 20, "width": 101, "height": 60]
            try await run(region.merging(["display": display]) { $1 }, part) { part.pictures.count > 5 }
            #expect(part.pictures.all.allSatisfy { $0.width == 100 && $0.height == 60 })
        }

        @Test("A whole screen of odd size is cropped, not scaled, and the plan states it")
        func oddSize() async throws {
            let fixture = try Fixture.display("--size", "641x361")
            let display = SettingValue.text(fixture.answer.display)
            let plan = try await MediaPipeline.plan(watching(["display": display]))
            let screen = try #require(plan.node("screen"))
            #expect(screen.element("even")?.properties == ["right": 1, "bottom": 1])
            #expect(screen.notes.first == "captures the whole screen of \(fixture.answer.display), 641x361")
            let words = "the right column and the bottom row are cropped to an even size, 640x360"
            #expect(screen.notes.contains(words), "\(screen.notes)")
            let seen = Seen()
            try await run(["display": display], seen) { seen.pictures.count > 5 }
            #expect(seen.pictures.all.allSatisfy { $0.width == 640 && $0.height == 360 })
        }

        @Test("Missing windows and displays are reported before anything runs")
        func failures() async throws {
            let fixture = try Fixture.display("--size", "640x360")
            let display = SettingValue.text(fixture.answer.display)
            #expect(await failure(of: watching(["display": ":987"]))?.code == "screen.unavailable")
            let window = await failure(of: watching(["display": display, "window": "Nothing"]))
            #expect(window?.code == "screen.no-window")
            #expect(window?.message.contains(fixture.answer.title) == true)
            let region = await failure(of: watching(["display": display, "x": 600, "width": 100]))
            #expect(region?.code == "screen.bad-region")
            #expect(region?.message.contains("640x360") == true)
            let environment = EnvironmentOverride(["DISPLAY": nil])
            defer { withExtendedLifetime(environment) {} }
            #expect(await failure(of: watching([:]))?.code == "screen.unavailable")
            #expect(await failure(of: watching(["pipewire-node": "35"]))?.code == "screen.unavailable")
        }

        @Test("A window that closes during capture is an error, and the process survives")
        func closed() async throws {
            let fixture = try Fixture.display("--window", "320x180", "--closing", "3")
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                watching(["display": .text(fixture.answer.display), "window": .text(fixture.answer.title)]),
                seen: seen)
            try await pipeline.start()
            await eventually("the loss") { !seen.failures.isEmpty }
            #expect(seen.failures.first?.code == "screen.lost")
            #expect(seen.failures.first?.message.contains(fixture.answer.title) == true)
            #expect(seen.pictures.count > 5)
            await pipeline.stop()
        }
    }
}

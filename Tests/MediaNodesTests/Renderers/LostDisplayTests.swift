import Glibc
import MediaGraph
import MediaNodes
import TestFixtures
import Testing
import TestSupport

extension MediaNodesTests {
    /// X servers that end while they are in use; see ../fixtures/display.py.
    @Suite struct LostDisplayTests {
        /// Captures a screen, shows a window on it, and counts frames of an unrelated source.
        private func graph(on display: String, isOptional: Bool) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 320, height: 240)
                    Tee("shown", isOptional: isOptional) { Node("window") }
                    Node.frames("view")
                }
                Chain {
                    Node("screen", settings: ["display": .text(display)], isOptional: isOptional)
                    Node("null", name: "screened", isOptional: isOptional)
                }
            }
        }

        private func stops(_ pipeline: MediaPipeline) async {
            let start = ContinuousClock.now
            await pipeline.stop()
            #expect(ContinuousClock.now - start < .seconds(5))
        }

        @Test("Optional parts end with their X server and a message, and the rest continues", arguments: [1, 2, 3])
        func optional(round: Int) async throws {
            let fixture = try Fixture.display("--size", "640x360")
            let environment = EnvironmentOverride(["DISPLAY": fixture.answer.display, "WAYLAND_DISPLAY": nil])
            defer { withExtendedLifetime(environment) {} }
            let graph = graph(on: fixture.answer.display, isOptional: true)
            let seen = Seen()
            let pipeline = try await MediaPipeline(graph, seen: seen)
            try await pipeline.start()
            await eventually("frames in all three places") {
                let counts = pipeline.statistics.videoRenderers
                return ["window", "screened"].allSatisfy { (counts[$0]?.framesRendered ?? 0) > 10 }
            }
            kill(fixture.answer.process, SIGKILL)
            await eventually("both losses") { seen.partFailures.count == 2 }
            #expect(seen.partFailures.map(\.code).sorted() == ["screen.lost", "window.closed"])
            #expect(seen.partFailures.allSatisfy { $0.message.contains(fixture.answer.display) })
            let before = seen.pictures.count
            await eventually("the rest to go on") { seen.pictures.count > before + 30 }
            #expect(pipeline.state == .running)
            #expect(seen.failures.isEmpty)
            await stops(pipeline)
        }

        @Test("Required parts fail with their X server and a message")
        func required() async throws {
            let fixture = try Fixture.display("--size", "640x360")
            let environment = EnvironmentOverride(["DISPLAY": fixture.answer.display, "WAYLAND_DISPLAY": nil])
            defer { withExtendedLifetime(environment) {} }
            let seen = Seen()
            let pipeline = try await MediaPipeline(graph(on: fixture.answer.display, isOptional: false), seen: seen)
            try await pipeline.start()
            await eventually("frames of the screen") {
                (pipeline.statistics.videoRenderers["screened"]?.framesRendered ?? 0) > 10
            }
            kill(fixture.answer.process, SIGKILL)
            await eventually("the loss") { !seen.failures.isEmpty }
            #expect(["screen.lost", "window.closed"].contains(seen.failures.first?.code ?? ""))
            // The rest continues until it is stopped.
            let before = seen.pictures.count
            await eventually("frames of the other source") { seen.pictures.count > before + 60 }
            await stops(pipeline)
        }

        @Test("A window of tiles reports that it closed when its X server ends")
        func tiles() async throws {
            let fixture = try Fixture.display("--size", "640x360")
            let environment = EnvironmentOverride(["DISPLAY": fixture.answer.display, "WAYLAND_DISPLAY": nil])
            defer { withExtendedLifetime(environment) {} }
            let closed = Collected<Bool>()
            let window = try TiledWindow(title: "Tiles", width: 320, height: 180) { closed.append(true) }
            window.addTile("one")
            // Not earlier: GStreamer's sinks do not survive a server that ends while they open their window.
            await eventually("the window to be drawn") { window.picturesDrawn > 5 }
            kill(fixture.answer.process, SIGKILL)
            await eventually("the end of the window") { closed.count == 1 }
            await window.close()
            #expect(closed.count == 1)
        }
    }
}

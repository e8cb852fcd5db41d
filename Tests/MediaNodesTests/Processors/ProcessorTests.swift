import MediaGraph
import MediaNodes
import Synchronization
import TestFixtures
import Testing
import TestSupport

extension MediaNodesTests {
    @Suite struct ProcessorTests {
        /// Runs the test pattern through nodes until it ends. Returns the output.
        private func run(
            _ nodes: Node..., frames: Int = 20, width: Int = 640, height: Int = 480, framesPerSecond: Double = 30
        ) async throws -> (pictures: [Picture], plan: GraphPlan) {
            let pattern = Node.testPattern(
                "pattern", width: width, height: height, framesPerSecond: framesPerSecond, frames: frames)
            let graph = MediaGraph {
                Chain {
                    pattern
                    for node in nodes { node }
                    Node.frames("view")
                }
            }
            let clock = SteppedClock()
            let watched = try await Watched(graph, on: clock)
            // One thread makes a frame and takes it to its end, and then waits for the clock.
            clock.run()
            try await watched.pipeline.start()
            await eventually("the pattern to end") { watched.hasEnded }
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
            return (watched.pictures(), watched.pipeline.plan)
        }

        @Test("A scaled frame has the requested size, and every frame passes")
        func scale() async throws {
            let (pictures, plan) = try await run(Node("scale", settings: ["width": 320]))
            #expect(pictures.allSatisfy { $0.width == 320 && $0.height == 240 })
            #expect(pictures.map(\.number) == (0..<20).map { UInt32($0) })
            #expect(plan.node("scale")?.formats["out"]?.height == 240)
        }

        @Test("A crop removes its settings' pixels, and the plan knows the remaining size")
        func crop() async throws {
            let (pictures, plan) = try await run(Node("crop", settings: ["right": 100, "bottom": 60]))
            #expect(pictures.allSatisfy { $0.width == 540 && $0.height == 420 })
            #expect(plan.node("crop")?.formats["out"]?.width == 540)
            // The bar code of the frame number shrinks with the frame and becomes unreadable; its first
            // block stays in place.
            #expect(pictures.first?.luma(x: 4, y: 4, width: 8, height: 8).allSatisfy { $0 == 16 } == true)
        }

        @Test("A live crop that would leave nothing is refused, and so is an edge beside a shape")
        func cropOfEverything() async throws {
            for (settings, edge) in [(["right": 300], 340), (["shape": "1:1"], 1)] as [([String: SettingValue], Int)] {
                let watched = try await Watched(
                    MediaGraph {
                        Chain {
                            Node.testPattern("pattern", width: 640, height: 480, framesPerSecond: 30)
                            Node("crop", settings: settings)
                            Node.frames("view")
                        }
                    })
                try await watched.pipeline.start()
                await eventually("a frame") { !watched.pictures().isEmpty }
                let error = await #expect(throws: MediaError.self) {
                    try await watched.pipeline.set("crop", "left", to: .integer(edge))
                }
                #expect(error?.code == MediaError.Code.settingUnusable, "\(String(describing: error))")
                let count = watched.pictures().count
                await eventually("more frames") { watched.pictures().count > count + 3 }
                await watched.pipeline.stop()
                #expect(watched.failure == nil)
            }
        }

        @Test(
            "A crop to an aspect ratio keeps the middle, and the plan gives the size that is left",
            arguments: [("1:1", 480, 480), ("13:32", 196, 480), ("32:13", 640, 260), ("31:13", 640, 270)])
        func cropToShape(shape: String, width: Int, height: Int) async throws {
            let (pictures, plan) = try await run(Node("crop", settings: ["shape": .text(shape)]), frames: 3)
            #expect(pictures.map(\.width) == [width, width, width])
            #expect(pictures.map(\.height) == [height, height, height])
            #expect(plan.node("crop")?.formats["out"] == .rawVideo(width: width, height: height, framesPerSecond: 30))
        }

        @Test(
            "A frame mirrored once is unreadable, mirrored twice it is unchanged",
            arguments: ["horizontal", "vertical"])
        func mirror(_ direction: String) async throws {
            let settings: [String: SettingValue] = ["direction": .text(direction)]
            let once = try await run(Node("mirror", settings: settings), frames: 5).pictures
            #expect(once.count == 5 && once.allSatisfy { $0.number == nil })
            let twice = try await run(
                Node("mirror", settings: settings), Node("mirror", name: "again", settings: settings), frames: 5
            ).pictures
            #expect(twice.map(\.number) == [0, 1, 2, 3, 4])
        }

        @Test("Rotating by 90 degrees swaps width and height; 90 and 270 together change nothing")
        func rotate() async throws {
            let (turned, plan) = try await run(Node("rotate", settings: ["degrees": 90]), frames: 5)
            #expect(turned.allSatisfy { $0.width == 480 && $0.height == 640 })
            #expect(plan.node("rotate")?.formats["out"] == .rawVideo(width: 480, height: 640, framesPerSecond: 30))
            // The top left is now at the top right: the first block of the number is black.
            #expect(turned.first?.luma(x: 468, y: 4, width: 8, height: 8).allSatisfy { $0 == 16 } == true)
            let back = try await run(
                Node("rotate", settings: ["degrees": 90]), Node("rotate", name: "back", settings: ["degrees": 270]),
                frames: 5
            ).pictures
            #expect(back.map(\.number) == [0, 1, 2, 3, 4])
        }

        @Test("A lower rate drops frames immediately; a higher one repeats them with the planned latency")
        func rate() async throws {
            let (fewer, plan) = try await run(Node("rate", settings: ["fps": 15]), frames: 30)
            #expect(fewer.map(\.number) == stride(from: 0, to: 30, by: 2).map { UInt32($0) })
            #expect(plan.node("rate")?.latency == 0)
            #expect(fewer.allSatisfy { $0.wait == 0 }, "\(fewer.map(\.wait))")
            let (more, slower) = try await run(
                Node("rate", settings: ["fps": 30]), frames: 15, framesPerSecond: 15)
            // videorate shows the frame that is nearest. In the middle between two, nanoseconds decide: 66666666 ns is
            // twice 33333333 ns, but 133333333 ns is less than twice 66666667 ns.
            // At the end, it shows the last one once.
            let shown = (0..<15).flatMap { Array(repeating: UInt32($0), count: $0 == 14 ? 1 : [2, 1, 3][$0 % 3]) }
            #expect(more.map(\.number) == shown)
            let start = try #require(more.first).captureTime
            for (index, picture) in more.enumerated() {
                #expect(abs(picture.captureTime.seconds(since: start) - Double(index) / 30) < 0.000_001)
                // Every frame waits for its successor, that is the planned latency. The last one has none.
                let successor = min((picture.number ?? 0) + 1, 14)
                #expect(abs(picture.handedOver.seconds(since: start) - Double(successor) / 15) < 0.000_001)
            }
            #expect(abs((slower.node("rate")?.latency ?? 0) - 1.0 / 15) < 0.001)
        }

        @Test("A scale that lowers the rate is as fast as a rate node, and one that keeps it adds no latency")
        func quickScale() async throws {
            let (pictures, plan) = try await run(Node("scale", settings: ["width": 320, "fps": 15]), frames: 30)
            #expect(plan.node("scale")?.latency == 0)
            #expect(pictures.count == 15)
            #expect(pictures.allSatisfy { $0.wait == 0 }, "\(pictures.map(\.wait))")
            let (_, same) = try await run(Node("scale", settings: ["width": 320, "fps": 30]), frames: 5)
            #expect(same.node("scale")?.elements.contains { $0.factory == "videorate" } == false)
            let (_, more) = try await run(
                Node("scale", settings: ["fps": 30]), frames: 5, framesPerSecond: 15)
            #expect(abs((more.node("scale")?.latency ?? 0) - 1.0 / 15) < 0.001)
        }

        @Test("An unusable setting is refused before anything runs, with the node's name")
        func unusableSettings() async {
            let wrong: [(Node, String)] = [
                (Node("crop", settings: ["left": 400, "right": 300]), "leaves nothing"),
                (Node("crop", settings: ["shape": "wide"]), "16:9"),
                (Node("crop", settings: ["shape": .text("1:" + String(repeating: "9", count: 5000))]), "16:9"),
                (Node("crop", settings: ["shape": "16:9", "left": 2]), "Set one of them"),
                (Node("rotate", settings: ["degrees": 45]), "0, 90, 180 or 270"),
                (Node("overlay", settings: ["color": "red"]), "#rrggbb"),
            ]
            for (node, words) in wrong {
                let graph = chain(.testPattern("pattern"), node, .frames("view"))
                let error = await #expect(throws: MediaError.self) { try await Watched(graph) }
                // The shape is too long for validation to match it.
                let isPlanned = node.settings["right"] != nil || (node.settings["shape"]?.text?.count ?? 0) > 4096
                #expect(error?.code == (isPlanned ? MediaError.Code.settingUnusable : MediaError.Code.graphInvalid))
                #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
                #expect(error?.message.contains("\"\(node.name)\"") == true)
            }
        }

        @Test("A direction changed live applies from the next frame on")
        func changeWhileRunning() async throws {
            let watched = try await Watched(
                chain(
                    .testPattern("pattern"), Node("mirror", settings: ["direction": "none"]),
                    Node("rotate", settings: ["degrees": 0]),
                    .frames("view")))
            try await watched.pipeline.start()
            await eventually("unchanged frames") { watched.pictures().contains { $0.number != nil } }
            try await watched.set("mirror", "direction", "horizontal")
            await eventually("a mirrored frame") { watched.pictures().last?.number == nil }
            try await watched.set("mirror", "direction", "none")
            await eventually("an unchanged frame") { watched.pictures().last?.number != nil }
            try await watched.set("rotate", "degrees", 90)
            await eventually("an upright frame") { watched.pictures().last?.height == 640 }
            let error = await #expect(throws: MediaError.self) { try await watched.set("rotate", "degrees", 45) }
            #expect(error?.code == MediaError.Code.graphInvalid)
            await watched.pipeline.stop()
            #expect(watched.failure == nil)
        }
    }
}

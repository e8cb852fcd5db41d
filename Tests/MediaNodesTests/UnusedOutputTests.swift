import MediaGraph
import MediaNodes
import TestFixtures
import Testing

extension MediaNodesTests {
    /// Outputs that nothing is linked to.
    @Suite struct UnusedOutputTests {
        private static func heard(_ watch: NodeWatch) -> Int {
            watch.sample().first { $0.node == "heard" }?.framesIn ?? 0
        }

        @Test("A source runs on for one output when the optional consumer of the other cannot run")
        func optionalConsumer() async throws {
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Node("element:no-such-element").optional
                    }
                    Chain(from: "pattern", port: "audio") { Node.null("heard") }
                })
            #expect(pipeline.plan.omitted.map(\.node) == ["element:no-such-element"])
            let watch = pipeline.watch()
            try await pipeline.start()
            await eventually("a second of audio") { Self.heard(watch) > 50 }
            #expect(pipeline.state == .running)
            await pipeline.stop()
        }

        @Test("An edit uses an output that was not used before, and the other output goes on")
        func editUsesOutput() async throws {
            let seen = Collected<Int>()
            var bindings = NodeBindings()
            bindings.frames["seen"] = { seen.append($0.width) }
            let sound = MediaGraph {
                Chain { Node.testPattern("pattern", width: 160, height: 120) }
                Chain(from: "pattern", port: "audio") { Node.null("heard") }
            }
            let pipeline = try await MediaPipeline(sound, bindings: bindings)
            let watch = pipeline.watch()
            try await pipeline.start()
            try await pipeline.apply(sound.adding { Chain(from: "pattern", port: "video") { Node.frames("seen") } })
            let (before, heard) = (seen.count, Self.heard(watch))
            await eventually("video") { seen.count > before + 10 }
            await eventually("audio") { Self.heard(watch) > heard + 20 }
            await pipeline.stop()
        }
    }
}

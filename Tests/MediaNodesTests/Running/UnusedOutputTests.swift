import MediaGraph
import MediaNodes
import TestSupport
import Testing

extension MediaNodesTests {
    /// Outputs that nothing is linked to.
    @Suite struct UnusedOutputTests {
        private static func heard(_ watch: NodeWatch) -> Int {
            watch.sample().first { $0.node == "heard" }?.framesIn ?? 0
        }

        /// A kind of node that no machine can run.
        private static func registry() throws -> NodeRegistry {
            try .builtIn.adding(
                .elements(
                    ElementsNode("absent", "", elements: [.init("no-such-element", as: "it")], takes: .rawVideo())))
        }

        /// Audio, and video for an optional consumer that cannot run.
        private static let withoutConsumer = MediaGraph {
            Chain {
                Node.testPattern("pattern", width: 160, height: 120)
                Node("absent").optional
            }
            Chain(from: "pattern", port: "audio") { Node.null("heard") }
        }

        @Test("A source runs on for one output when the optional consumer of the other cannot run")
        func optionalConsumer() async throws {
            let pipeline = try await MediaPipeline(Self.withoutConsumer, registry: Self.registry())
            #expect(pipeline.plan.omitted.map(\.node) == ["absent"])
            let watch = pipeline.watch()
            try await pipeline.start()
            await eventually("a second of audio") { Self.heard(watch) > 50 }
            #expect(pipeline.state == .running)
            let pattern = watch.sample().first { $0.node == "pattern" }
            #expect(pattern?.format?.kind == .rawAudio)
            await pipeline.stop()
        }

        @Test("An edit gives a consumer to an output that had none, and the other output goes on")
        func editUsesOutput() async throws {
            let seen = Collected<Int>()
            var bindings = NodeBindings()
            bindings.frames["seen"] = { seen.append($0.width) }
            let pipeline = try await MediaPipeline(Self.withoutConsumer, registry: Self.registry())
            let watch = pipeline.watch()
            try await pipeline.start()
            try await pipeline.apply(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Node.frames("seen")
                    }
                    Chain(from: "pattern", port: "audio") { Node.null("heard") }
                }, bindings: bindings)
            let (before, heard) = (seen.count, Self.heard(watch))
            await eventually("video") { seen.count > before + 10 }
            await eventually("audio") { Self.heard(watch) > heard + 20 }
            await pipeline.stop()
        }
    }
}

import GStreamerKit
import MediaGraph
import Testing
import TestSupport

@testable import MediaNodes

private struct Failing: Renderer {
    struct Fault: Error {}
    static let summary = "Fails immediately"

    init() {}

    func render(_ media: RenderStream<VideoFrame>) async throws { throw Fault() }
}

extension MediaNodesTests {
    /// Nodes that fail while an edit adds or replaces them.
    @Suite struct FailingNodeTests {
        private static let watching = MediaGraph {
            Chain {
                Node.testPattern("pattern", width: 160, height: 120)
                Node.null("first")
            }
        }

        @Test("A new node that fails by itself fails the edit with its error, and the running graph goes on")
        func stagedFails() async throws {
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                Self.watching, bindings: seen.bindings(of: Self.watching),
                registry: try .builtIn.adding(.renderer(Failing.self)))
            try await pipeline.start()
            let error = await #expect(throws: MediaError.self) {
                try await pipeline.apply(
                    Self.watching.adding {
                        Chain(from: "pattern") { Failing.node() }
                        // Without packets there is no frame, so the edit waits.
                        Chain {
                            Node.rtpInput("nobody", codec: VideoCodec.vp8)
                            Node.null("second")
                        }
                    }, within: 20)
            }
            #expect(error?.code == MediaError.Code.nodeFailed && error?.node == "failing", "\(error as Any)")
            #expect(pipeline.state == .running)
            #expect(pipeline.plan.nodes.map(\.name) == ["pattern", "first"])
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
        }

        @Test("An optional node that fails while an edit replaces it does not end its replacement")
        func replaced() async throws {
            let (seen, gate, prepared) = (Seen(), Gate(), Collected<String>())
            func graph(width: Int) -> MediaGraph {
                Self.watching.adding {
                    Chain(from: "pattern") {
                        Node("scale", name: "optional", settings: ["width": .integer(width), "height": 48]).optional
                        Node.null("end").optional
                    }
                }
            }
            let slow = graph(width: 80).adding { Chain(from: "pattern") { Node("prepared", name: "slow") } }
            let pipeline = try await MediaPipeline(
                graph(width: 64), bindings: seen.bindings(of: slow),
                registry: .builtIn.adding([
                    .prepared { name in
                        prepared.append(name)
                        gate.wait()
                    }
                ]))
            try await pipeline.start()
            let old = try #require(pipeline.graph.node("optional"))
            async let change = pipeline.apply(slow, within: 20)
            await eventually("the edit waits") { prepared.count == 1 }
            let failure = MediaError(code: MediaError.Code.elementFailed, message: "The old one failed.")
            old.reporter.fail(failure, "optional")
            gate.open()
            let replaced = try await change
            #expect(replaced.description == "adds slow; replaces end, optional")
            // The next edit follows whatever the failure has led to.
            #expect(try await pipeline.apply(graph(width: 80)).description == "removes slow")
            #expect(pipeline.plan.node("optional") != nil)
            await pipeline.stop()
            #expect(seen.partFailures.isEmpty && seen.failures.isEmpty)
        }
    }
}

extension NodeImplementation {
    private struct Prepared: RunningNode {
        let name: String
        let body: @Sendable (String) -> Void

        func prepare() { body(name) }
    }

    /// A renderer, `prepared`, that calls a function before it plays.
    fileprivate static func prepared(_ body: @escaping @Sendable (_ name: String) -> Void) -> NodeImplementation {
        let kind = NodeKind("prepared", .renderer, "Reports its preparation", inputs: [Port("in", [.rawVideo])])
        return NodeImplementation(
            kind: kind, plan: { (request) throws(MediaError) in .sink(request) },
            activate: { (instance) throws(MediaError) in Prepared(name: instance.name, body: body) })
    }
}

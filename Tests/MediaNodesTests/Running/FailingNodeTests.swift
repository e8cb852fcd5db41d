import GStreamerKit
import MediaGraph
import TestFixtures
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
    /// Nodes that fail while the pipeline starts, or while an edit adds or replaces them.
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
                registry: try .builtIn.adding(.renderer(Failing.init)))
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

        @Test("An optional node whose file another pipeline writes is left out at the start, and the rest runs")
        func optionalPreparation() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/a.mkv"
            func recording(_ recorder: Node) -> MediaGraph {
                Self.watching.adding { Chain(from: "pattern") { recorder } }
            }
            let first = try await MediaPipeline(recording(.recorder(path: path)))
            try await first.start()
            func frames() -> Int { first.statistics.recorders["recorder"]?.frames ?? 0 }
            await eventually("frames") { frames() > 5 }
            let graph = recording(.recorder(path: path).optional)
            let seen = Seen()
            let second = try await MediaPipeline(graph, seen: seen)
            try await second.start()
            #expect(seen.partFailures.map(\.code) == [MediaError.Code.fileConflict])
            #expect(second.plan.node("recorder") == nil && second.plan.node("first") != nil)
            let before = frames()
            await eventually("the other recording goes on") { frames() > before + 5 }
            await second.stop()
            await first.stop()
            #expect(seen.failures.isEmpty)
            #expect(DecodedRecording(path).numbers.count == frames())
        }

        @Test("An optional source that refuses to start is left out, and the rest runs")
        func optionalSource() async throws {
            let seen = Seen()
            let graph = Self.watching.adding {
                Chain {
                    Node("element:filesrc", name: "nowhere", settings: ["location": "/nowhere/file"]).optional
                    Node("element:fakesink", name: "rest").optional
                }
            }
            let pipeline = try await MediaPipeline(graph, seen: seen)
            let watch = pipeline.watch()
            try await pipeline.start()
            #expect(pipeline.plan.nodes.map(\.name) == ["pattern", "first"])
            #expect(seen.partFailures.map(\.node) == ["nowhere"])
            await eventually("frames") { watch.sample().contains { $0.node == "first" && $0.framesIn > 5 } }
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
        }

        @Test("A start ends in time if an optional source and another one deliver nothing")
        func silentSources() async throws {
            let seen = Seen()
            let graph = MediaGraph {
                Chain {
                    Node("quiet", name: "a").optional
                    Node.null("x").optional
                }
                Chain {
                    Node("quiet", name: "b")
                    Node.null("y")
                }
            }
            let pipeline = try await MediaPipeline(
                graph, bindings: seen.bindings(of: graph), registry: .builtIn.adding([.quiet]),
                limits: Limits(start: 0.3))
            let errors = Collected<MediaError?>()
            let start = Task { errors.append(await #expect(throws: MediaError.self) { try await pipeline.start() }) }
            await eventually(within: 10, "the start gives up") { errors.count == 1 }
            #expect(errors.all.first??.code == MediaError.Code.pipelineStalled)
            #expect(errors.all.first??.node == "b")
            await pipeline.stop()
            await start.value
        }

        /// A graph whose start waits at a gate, and then goes on to a node that refuses to start.
        private func refusing(_ refused: Node, gate: Gate, prepared: Collected<String>) -> (MediaGraph, NodeRegistry) {
            let graph = Self.watching.adding {
                Chain(from: "pattern") { Node("prepared", name: "a") }
                Chain(from: "pattern") { refused }
            }
            let registry = NodeRegistry.builtIn.adding([
                .prepared { (name) throws(MediaError) in
                    prepared.append(name)
                    if name == "refused" {
                        throw MediaError(code: MediaError.Code.elementFailed, message: "It does not start.")
                    }
                    gate.wait()
                }
            ])
            return (graph, registry)
        }

        @Test("An edit during the start waits for it, and an optional node that then fails ends neither")
        func editDuringStart() async throws {
            let (seen, gate, prepared) = (Seen(), Gate(), Collected<String>())
            let (graph, registry) = refusing(
                Node("prepared", name: "refused").optional, gate: gate, prepared: prepared)
            let more = Self.watching.adding {
                Chain(from: "pattern") { Node("prepared", name: "a") }
                Chain(from: "pattern") { Node.null("b") }
            }
            let pipeline = try await MediaPipeline(
                graph, bindings: seen.bindings(of: graph), registry: registry, limits: Limits(start: 60))
            let start = Task { try await pipeline.start() }
            await eventually("a node opens its files") { prepared.count == 1 }
            let edit = Task { try await pipeline.apply(more, within: 5) }
            let cancelled = Task { try await pipeline.apply(more, within: 5) }
            await eventually("both edits wait") { pipeline.editsAwaitingStart == 2 }
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            gate.open()
            try await start.value
            #expect(try await edit.value.description == "adds b")
            #expect(seen.partFailures.map(\.node) == ["refused"])
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
        }

        @Test("An edit during a start that fails is refused")
        func editDuringFailingStart() async throws {
            let (gate, prepared) = (Gate(), Collected<String>())
            let (graph, registry) = refusing(Node("prepared", name: "refused"), gate: gate, prepared: prepared)
            let pipeline = try await MediaPipeline(graph, registry: registry, limits: Limits())
            let start = Task { try await pipeline.start() }
            await eventually("a node opens its files") { prepared.count == 1 }
            let edit = Task { try await pipeline.apply(Self.watching, within: 5) }
            await eventually("the edit waits") { pipeline.editsAwaitingStart == 1 }
            gate.open()
            await #expect(throws: MediaError.self) { try await start.value }
            let error = await #expect(throws: MediaError.self) { try await edit.value }
            #expect(error?.code == MediaError.Code.pipelineStopped, "\(error as Any)")
        }

        @Test("A start does not wait for a source that an edit removes meanwhile")
        func silentSourceRemoved() async throws {
            let seen = Seen()
            let graph = Self.watching.adding {
                Chain {
                    Node("quiet", name: "silent")
                    Node.null("second")
                }
            }
            let pipeline = try await MediaPipeline(
                graph, bindings: seen.bindings(of: graph), registry: .builtIn.adding([.quiet]),
                limits: Limits(start: 60))
            let start = Task { try await pipeline.start() }
            await eventually("frames") { seen.events.all.contains { if case .firstFrame = $0 { true } else { false } } }
            #expect(try await pipeline.apply(Self.watching).description == "removes silent, second")
            let hasStarted = AtomicBool()
            Task {
                _ = await start.result
                hasStarted.raise()
            }
            await eventually(within: 10, "the start") { hasStarted.value }
            #expect(pipeline.state == .running)
            await pipeline.stop()
            _ = await start.result
        }

        @Test("A stop while a node opens its files keeps the others from opening theirs")
        func stopWhilePreparing() async throws {
            let (gate, prepared) = (Gate(), Collected<String>())
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Tee { Node("prepared", name: "one") }
                        Node("prepared", name: "two")
                    }
                },
                registry: .builtIn.adding([
                    .prepared { name in
                        prepared.append(name)
                        gate.wait()
                    }
                ]))
            let start = Task { try await pipeline.start() }
            await eventually("the first opens its files") { prepared.count == 1 }
            async let stop: Void = pipeline.stop()
            await eventually("the stop has begun") { pipeline.state == .stopped }
            gate.open()
            await stop
            let error = await #expect(throws: MediaError.self) { try await start.value }
            #expect(error?.code == MediaError.Code.pipelineStopped)
            #expect(prepared.count == 1)
        }
    }
}

extension NodeImplementation {
    private struct Prepared: RunningNode {
        let name: String
        let body: @Sendable (String) throws(MediaError) -> Void

        func prepare() throws(MediaError) { try body(name) }
    }

    /// A renderer, `prepared`, that calls a function before it plays.
    fileprivate static func prepared(
        _ body: @escaping @Sendable (_ name: String) throws(MediaError) -> Void
    ) -> NodeImplementation {
        let kind = NodeKind("prepared", .renderer, "Reports its preparation", inputs: [Port("in", [.rawVideo])])
        return NodeImplementation(
            kind: kind, plan: { (request) throws(MediaError) in .sink(request) },
            activate: { (instance) throws(MediaError) in Prepared(name: instance.name, body: body) })
    }

    /// A capturer, `quiet`, that delivers nothing.
    fileprivate static let quiet = NodeImplementation(
        kind: NodeKind("quiet", .capturer, "Delivers nothing", outputs: [Port("video", [.rawVideo])]),
        plan: { (request) throws(MediaError) in
            let format = MediaFormat.rawVideo(width: 160, height: 120, framesPerSecond: 30)
            var plan = NodePlan(request.node)
            plan.add("videotestsrc", as: "source", ["is-live": true])
            plan.appendFilter(RawFormat.video(format), as: "format")
            plan.append("identity", as: "gate", ["drop-probability": 1.0])
            plan.setOutput("video", format)
            return plan
        },
        activate: { (instance) throws(MediaError) in
            instance.awaitFirstBuffer(at: instance.element("gate").source)
            return nil
        })
}

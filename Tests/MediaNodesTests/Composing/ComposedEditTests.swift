import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

/// An object of the application.
private final class Lamp: Sendable {
    let luma: UInt8

    init(luma: UInt8) { self.luma = luma }
}

/// A value with a live setting.
private struct Lit: Capturer {
    static let summary = "Frames of one grey"
    @Setting("Added luma", in: 0...100, isChangeable: true) var light = 0
    let lamp: Lamp

    func format() -> PictureFormat { PictureFormat(width: 64, height: 48, framesPerSecond: 30) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true { try await output.draw { $0.fill(luma: lamp.luma + UInt8(light)) } }
    }
}

/// Fails at its third frame.
private struct Weary: Processor {
    static let summary = "Ends soon"
    let lamp: Lamp
    var frames = 0

    init(lamp: Lamp) { self.lamp = lamp }

    mutating func process(_ picture: inout MutableVideoFrame) throws {
        frames += 1
        if frames > 2 { throw MediaError(code: "node.weary", message: "It ends after 2 frames.") }
    }
}

private struct Shading: Processor {
    static let summary = "Keeps an object of the program"
    let lamp: Lamp

    mutating func process(_ picture: inout MutableVideoFrame) { picture.fill(luma: lamp.luma) }
}

private struct Needy: Processor {
    static let summary = "Needs a path"
    @Setting("A path") var path: String

    mutating func process(_ picture: inout MutableVideoFrame) {}
}

private struct Hasty: Renderer {
    static let summary = "Returns after a frame"

    func render(_ media: RenderStream<VideoFrame>) async throws { for await _ in media { return } }
}

private struct Patient: Renderer {
    static let summary = "Reads to the end"

    func render(_ media: RenderStream<VideoFrame>) async throws { for await _ in media {} }
}

/// A node of another module: no registry has its kind.
private struct Visitor: MediaNode {
    var handle: NodeHandle

    init() {
        let null = NodeImplementation(NullNode.self)
        handle = NodeHandle(
            NodeImplementation(
                kind: NodeKind("visitor", .renderer, "Reads anything", inputs: null.kind.inputs),
                plan: { (request) throws(MediaError) in .sink(request) }, activate: { _ in nil }), [:])
    }
}

extension MediaNodesTests {
    /// Edits of pipelines of handles, and what handles do after them.
    @Suite(.timeLimit(.minutes(1))) struct ComposedEditTests {
        private static func source() -> TestPattern { TestPattern(width: 320, height: 240) }

        @Test func `a second node of a kind that the registry lacks joins a running one`() async throws {
            let source = Self.source()
            let (pipeline, clock) = try await SteppedClock.running { source >>> Visitor() }
            defer { withExtendedLifetime(clock) {} }
            #expect(try await pipeline.add { source >>> Visitor() }.description == "adds visitor-2")
            #expect(
                try await pipeline.apply { source >>> Visitor() }.description
                    == "adds visitor-3; removes visitor, visitor-2")
            await pipeline.stop()
        }

        @Test func `a replaced composition keeps the live settings of its handles`() async throws {
            let (source, volume) = (Self.source(), Volume(0.25))
            let video = Null()
            let (pipeline, clock) = try await SteppedClock.running {
                source >>> video
                source.audio >>> volume >>> Null()
            }
            defer { withExtendedLifetime(clock) {} }
            try await volume.setMuted(true)
            try await volume.setFactor(0.5)
            let change = try await pipeline.apply {
                source >>> video
                source.audio >>> volume >>> Null().named("other")
            }
            #expect(change.settings.isEmpty)
            #expect(pipeline.plan.node(volume)?.node.settings == ["volume": 0.5, "mute": true])
            await pipeline.stop()
        }

        @Test func `a value is one node at a time if it has live settings, and begins with its plan's`() async throws {
            let value = Lit(lamp: Lamp(luma: 40))
            let refused = await errorCode {
                _ = try await MediaPipeline {
                    value >>> Null()
                    value >>> Null()
                }
            }
            #expect(refused == "graph.invalid")
            let (source, lumas, lit) = (Self.source(), Collected<UInt8>(), value.node)
            let (pipeline, clock) = try await SteppedClock.running {
                source >>> Null()
                lit >>> Null()
            }
            defer { withExtendedLifetime(clock) {} }
            #expect(await errorCode { try await pipeline.add { value >>> Null() } } == "graph.invalid")
            try await lit.set(\.$light, to: 7)
            try await pipeline.remove(lit)
            try await pipeline.add {
                lit
                    >>> Frames { frame in
                        lumas.append(frame.withPlane(.luma) { bytes, _ in bytes.unsafeLoad(as: UInt8.self) })
                    }
            }
            #expect(pipeline.plan.node(lit)?.node.settings == ["light": 0])
            await eventually("frames") { lumas.count > 3 }
            #expect(Set(lumas.all) == [40])
            await pipeline.stop()
        }

        @Test func `a name stays with its node if a live setting of the edit is refused`() async throws {
            let (source, overlay) = (Self.source(), Overlay(text: "a"))
            let before = Null().named("end")
            let (pipeline, clock) = try await SteppedClock.running { source >>> overlay.named("overlay") >>> before }
            defer { withExtendedLifetime(clock) {} }
            // The overlay has no image. Only the graph of names can set it with the other change.
            let folder = TemporaryFolder()
            let next = Snapshot(path: folder.file("a.png")).named("end")
            var graph = pipeline.plan.source
            graph = graph.setting("overlay", "image-opacity", to: 0.5)
            graph.nodes = graph.nodes.map { $0.name == "end" ? Node("snapshot", name: "end") : $0 }
            #expect(await errorCode { try await pipeline.apply(graph, nodes: [next]) } == "graph.setting-unusable")
            #expect(pipeline.plan.node("end")?.node.kind == "null")
            #expect((before.name, next.name) == ("end", nil))
            await pipeline.stop()
        }

        @Test func `calls on a node of a stopped pipeline say that it does not run`() async throws {
            let (source, encoder) = (Self.source(), VideoEncoder(.vp8))
            let (pipeline, clock) = try await SteppedClock.running { source >>> encoder >>> Null() }
            defer { withExtendedLifetime(clock) {} }
            await pipeline.stop()
            #expect(await errorCode { try await encoder.setBitrate(.kilobitsPerSecond(500)) } == "node.not-running")
            #expect(await errorCode { try encoder.requestKeyframe() } == "node.not-running")
            #expect(await errorCode { try await pipeline.remove(encoder) } == "node.not-running")
            // Events may be read later.
            #expect(encoder.name == "vp8-encoder")
        }

        @Test func `a failed optional node leaves its pipeline, with its objects`() async throws {
            let source = Self.source(), pattern = Self.source()
            weak var lamp: Lamp?
            let (pipeline, clock) = try await SteppedClock.running { source >>> Null() }
            defer { withExtendedLifetime(clock) {} }
            let events = pipeline.events
            try await {
                let made = Lamp(luma: 1)
                lamp = made
                let node = Weary(lamp: made).node
                try await pipeline.add { pattern >>> node.optional >>> Null().named("dark") }
                for await event in events {
                    guard case .partFailed = event else { continue }
                    #expect(node.name == nil)
                    #expect(event.isAbout(node))
                    break
                }
                #expect(await errorCode { try await pipeline.remove(node) } == "node.not-running")
            }()
            await eventually("the lamp is gone") { lamp == nil }
            await pipeline.stop()
        }

        @Test func `a reused name keeps no code of the node that had it`() async throws {
            let source = Self.source()
            weak var lamp: Lamp?
            let (pipeline, clock) = try await SteppedClock.running { source >>> Null() }
            defer { withExtendedLifetime(clock) {} }
            try await {
                let made = Lamp(luma: 16)
                lamp = made
                try await pipeline.add { source >>> Shading(lamp: made).node.named("part") >>> Null().named("end") }
            }()
            try await pipeline.apply { source >>> Mirroring().named("part") >>> Null().named("other") }
            await eventually("the lamp is gone") { lamp == nil }
            await pipeline.stop()
        }

        @Test func `a node that stays keeps no code of the node that fed it`() async throws {
            let (source, first, end) = (Self.source(), Null(), Null().named("end"))
            weak var lamp: Lamp?
            let (pipeline, clock) = try await SteppedClock.running { source >>> first }
            defer { withExtendedLifetime(clock) {} }
            try await {
                let made = Lamp(luma: 16)
                lamp = made
                try await pipeline.add { source >>> Shading(lamp: made).node.named("part") >>> end }
            }()
            try await pipeline.apply {
                source >>> first
                source >>> Mirroring().named("other") >>> end
            }
            await eventually("the lamp is gone") { lamp == nil }
            await pipeline.stop()
        }

        @Test func `two edits at a time do not give one name to two handles`() throws {
            let roster = NodeRoster()
            let (first, second) = (Null().named("end"), Null().named("end"))
            let source = TestPattern()
            let enrolled = try roster.enroll(Composition { source >>> first }, isWhole: false)
            #expect(throws: MediaError.self) {
                try roster.enroll(Composition { source >>> second }, isWhole: false)
            }
            #expect((first.name, second.name) == ("end", nil))
            withExtendedLifetime(enrolled) {}
        }

        @Test func `a handle that runs keeps its place when a graph gives it another name`() async throws {
            let (source, end) = (Self.source(), Null())
            let (pipeline, clock) = try await SteppedClock.running { source >>> end.named("end") }
            defer { withExtendedLifetime(clock) {} }
            var graph = pipeline.plan.source
            graph.nodes.append(Node("null", name: "other"))
            #expect(
                await errorCode { try await pipeline.apply(graph, nodes: [end.named("other")]) } == "graph.invalid")
            #expect(end.name == "end")
            await pipeline.stop()
        }

        @Test func `a value without a required setting is refused`() async {
            let refused = await errorCode {
                _ = try await MediaPipeline { TestPattern() >>> Needy() >>> Null() }
            }
            #expect(refused == "graph.invalid")
        }

        // MARK: Events

        private static func names(of events: AsyncStream<MediaEvent>) -> Collected<String> {
            let names = Collected<String>()
            Task {
                for await event in events { names.append(String("\(event)".prefix { $0 != "(" })) }
                names.append("over")
            }
            return names
        }

        @Test func `the events end with the end or the failure of the pipeline`() async throws {
            let pipeline = try await MediaPipeline { TestPattern(width: 320, height: 240, frames: 3) >>> Null() }
            let early = Self.names(of: pipeline.events)
            try await pipeline.start()
            await eventually("the end of the stream") { early.all == ["firstFrame", "ended", "over"] }
            let late = Self.names(of: pipeline.events)
            await eventually("the end of a later stream") { late.all == ["firstFrame", "ended", "over"] }
            await pipeline.stop()
            let reporter = Reporter(events: nil)
            reporter.fail(MediaError(code: "test.failed", message: "It failed."))
            let failed = Self.names(of: reporter.listen())
            await eventually("the end of the failed") { failed.all == ["failed", "over"] }
        }

        @Test func `readers of all threads get the events in one order, and none is lost at the end`() async throws {
            let reporter = Reporter(events: nil)
            let readers = (0..<3).map { _ in Self.messages(of: reporter.listen()) }
            await withTaskGroup(of: Void.self) { group in
                for thread in 0..<4 {
                    group.addTask { for number in 0..<20 { reporter.warn(nil, "\(thread) \(number)") } }
                }
            }
            reporter.close()
            let late = Self.messages(of: reporter.listen())
            for reader in readers + [late] { await eventually("the end") { reader.all.last == "over" } }
            #expect(late.count == 81)
            for reader in readers { #expect(reader.all == late.all) }
        }

        private static func messages(of events: AsyncStream<MediaEvent>) -> Collected<String> {
            let messages = Collected<String>()
            Task {
                for await event in events { if case .warning(_, let message) = event { messages.append(message) } }
                messages.append("over")
            }
            return messages
        }

        // MARK: Values

        @Test func `two pipelines do not share the live settings of a value`() async throws {
            let value = Lit(lamp: Lamp(luma: 40))
            let first = try await MediaPipeline { value >>> Null() }
            #expect(await errorCode { _ = try await MediaPipeline { value >>> Null() } } == "node.in-use")
            await first.stop()
            let second = try await MediaPipeline { value >>> Null() }
            await second.stop()
        }

        @Test func `a required setting of a value can be set`() async throws {
            var needy = Needy()
            needy.path = "a"
            var other = needy
            other.path = "b"
            let node = needy.node
            let pipeline = try await MediaPipeline {
                TestPattern() >>> node >>> Null()
                TestPattern() >>> other >>> Null()
            }
            #expect(pipeline.plan.node(node)?.node.settings == ["path": "a"])
            #expect(pipeline.plan.node("needy-2")?.node.settings == ["path": "b"])
            await pipeline.stop()
        }

        @Test func `a kind of a graph of names may hold objects of the program`() async throws {
            let (lamp, lumas) = (Lamp(luma: 77), Collected<UInt8>())
            let registry = try NodeRegistry.builtIn.adding(.processor { Shading(lamp: lamp) })
            let graph = chain(
                .testPattern("pattern", width: 64, height: 64), Node("shading"), Node("frames", name: "view"))
            let view = Frames { frame in
                lumas.append(frame.withPlane(.luma) { bytes, _ in bytes.unsafeLoad(as: UInt8.self) })
            }
            let pipeline = try await MediaPipeline(graph, nodes: [view.named("view")], registry: registry)
            try await pipeline.start()
            await eventually("a frame") { lumas.count > 0 }
            await pipeline.stop()
            #expect(Set(lumas.all) == [77])
        }

        @Test func `a renderer that returns early is reported`() async throws {
            let hasty = Hasty().node
            let pipeline = try await MediaPipeline { TestPattern(width: 320, height: 240) >>> hasty }
            let events = pipeline.events
            try await pipeline.start()
            for await case .warning(let node, let message) in events {
                #expect(node == "hasty")
                #expect(message.hasSuffix("[node.ended]"))
                break
            }
            await pipeline.stop()
            // One that reads to the end is not.
            let patient = try await MediaPipeline { TestPattern(width: 320, height: 240, frames: 3) >>> Patient() }
            try await patient.run()
            let stopped = try await MediaPipeline { TestPattern(width: 320, height: 240) >>> Patient() }
            try await stopped.start()
            await stopped.stop()
            for pipeline in [patient, stopped] {
                for await case .warning(_, let message) in pipeline.events { Issue.record("\(message)") }
            }
        }

        @Test func `a stop releases the functions and values, and keeps the figures`() async throws {
            weak var (lamp, other): (Lamp?, Lamp?)
            let (pipeline, clock) = try await {
                let (made, seen, source) = (Lamp(luma: 16), Lamp(luma: 17), Self.source())
                (lamp, other) = (made, seen)
                return try await SteppedClock.running {
                    source >>> Shading(lamp: made) >>> Frames { _ in _ = seen.luma }
                }
            }()
            defer { withExtendedLifetime(clock) {} }
            let watch = pipeline.watch()
            await eventually("frames") { pipeline.statistics.videoRenderers["frames"]?.framesRendered ?? 0 > 3 }
            #expect(lamp != nil && other != nil)
            await pipeline.stop()
            // The thread that ran them may only be about to let go.
            await eventually("the release") { lamp == nil && other == nil }
            #expect(pipeline.statistics.videoRenderers["frames"]?.framesRendered ?? 0 > 3)
            #expect(watch.sample().map(\.node) == ["test-pattern", "shading", "frames"])
            #expect(pipeline.plan.node("shading") != nil)
        }
    }
}

/// Compiles only if a pipeline can be composed of the properties of an actor.
@MainActor private final class Stage {
    private let camera = TestPattern(width: 320, height: 240)
    private var isShown = true
    private var pipeline: MediaPipeline?

    func run() async throws {
        let pipeline = try await MediaPipeline { if isShown { camera >>> Null() } }
        self.pipeline = pipeline
        try await pipeline.start()
        isShown = false
        try await pipeline.add { if !isShown { camera >>> Null() } }
        try await pipeline.apply { camera >>> Null() }
        await pipeline.stop()
    }
}

extension MediaNodesTests.ComposedEditTests {
    @Test func `an object of the main actor composes a pipeline of its properties`() async throws {
        try await Stage().run()
    }
}

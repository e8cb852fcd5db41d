import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

extension MediaPipeline {
    /// A pipeline of handles on a clock that the test moves.
    fileprivate convenience init(
        on clock: SteppedClock, @CompositionBuilder _ compose: () -> Composition
    ) async throws {
        try await self.init(compose(), limits: Limits(), clock: clock.clock)
    }
}

/// An object of the application.
private final class Brush: Sendable {
    let luma: UInt8
    let strokes = Mutex(0)

    init(luma: UInt8) { self.luma = luma }
}

/// Has no `init()`, so only the program can make it.
private struct Painting: Capturer {
    static let summary = "Grey frames of a brush"
    @Setting("Frames per second", in: 1...60, unit: "frames/s") var fps = 30
    @Setting("Added luma", in: 0...100, isChangeable: true) var light = 0
    let brush: Brush
    var lamp = Lamp()

    struct Lamp: Sendable {
        @Setting("Power", in: 0...10, isChangeable: true) var power = 1
    }

    func format() -> PictureFormat { PictureFormat(width: 64, height: 48, framesPerSecond: Double(fps)) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true {
            try await output.draw { $0.fill(luma: brush.luma + UInt8(light)) }
            brush.strokes.withLock { $0 += 1 }
        }
    }
}

private struct Darkening: Processor {
    static let summary = "Darkens frames, and counts them"
    let brush: Brush

    mutating func process(_ picture: inout MutableVideoFrame) {
        brush.strokes.withLock { $0 += 1 }
        picture.fill(luma: brush.luma)
    }
}

private struct Looking: Renderer {
    static let summary = "Keeps the luma of frames"
    let seen: Collected<UInt8>

    func render(_ media: RenderStream<VideoFrame>) async throws {
        for await frame in media { seen.append(frame.luma) }
    }
}

extension VideoFrame {
    fileprivate var luma: UInt8 { withPlane(.luma) { bytes, _ in bytes.unsafeLoad(as: UInt8.self) } }
}

extension MediaNodesTests {
    /// Pipelines of handles, which are used while they run.
    @Suite struct ComposedPipelineTests {
        @Test func `a typed call changes a setting, and the plan shows it`() async throws {
            let (encoder, volume) = (VideoEncoder(.vp8), Volume())
            let source = TestPattern(width: 320, height: 240)
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(on: clock) {
                source >>> encoder >>> Null()
                source.audio >>> volume >>> Null()
            }
            clock.run(pipeline)
            try await pipeline.start()
            try await encoder.setBitrate(.kilobitsPerSecond(123))
            try await volume.setFactor(0.5)
            #expect(pipeline.plan.node(encoder)?.node.settings == ["bitrate": 123_000])
            #expect(pipeline.plan.node("vp8-encoder")?.node.settings == ["bitrate": 123_000])
            #expect(pipeline.plan.node(volume)?.node.settings == ["volume": 0.5])
            #expect(try encoder.statistics.targetBitsPerSecond == 123_000)
            let keyframes = try encoder.statistics.keyframes
            try encoder.requestKeyframe()
            await eventually("a keyframe") { (try? encoder.statistics.keyframes) ?? 0 > keyframes }
            #expect(await errorCode { try await encoder.setBitrate(.kilobitsPerSecond(1)) } == "graph.invalid")
            #expect(pipeline.plan.node(encoder)?.node.settings == ["bitrate": 123_000])
            await pipeline.stop()
        }

        @Test func `every live setting has a call on the handle`() async throws {
            let source = TestPattern(width: 320, height: 240), camera = Camera(device: "/dev/video-none")
            let (crop, mirroring, rotate, mixer) = (Crop(left: 2), Mirroring(), Rotate(), Mixer())
            let (volume, encoder, opus) = (Volume(), VideoEncoder(.vp8), OpusEncoder())
            let picture = Checkout.path("docs/page.png")
            let overlay = Overlay(text: "a", clock: "%H", image: Overlay.Image(path: picture))
            let pipeline = try await MediaPipeline {
                source >>> crop >>> mirroring >>> rotate >>> overlay >>> mixer
                camera >>> mixer >>> encoder >>> Null()
                source.audio >>> volume >>> opus >>> Null()
            }
            try await pipeline.start()
            try await crop.setLeft(4)
            try await crop.setRight(4)
            try await crop.setTop(4)
            try await crop.setBottom(4)
            try await mirroring.setDirection(.vertical)
            try await rotate.setDegrees(180)
            try await overlay.setText("b")
            try await overlay.setPosition(.center)
            try await overlay.setX(1)
            try await overlay.setY(1)
            try await overlay.setFontSize(20)
            try await overlay.setColor("#ffcc00")
            try await overlay.setShaded(true)
            try await overlay.setClockPosition(.top)
            try await overlay.setImageX(1)
            try await overlay.setImageY(1)
            try await overlay.setImageWidth(64)
            try await overlay.setImageHeight(64)
            try await overlay.setImageOpacity(0.5)
            try await mixer.setLayout(.grid)
            try await mixer.setMain(2)
            try await mixer.setCorner(.topLeft)
            try await mixer.setInset(0.3)
            try await mixer.setMargin(8)
            try await volume.setFactor(0.5)
            try await volume.setMuted(true)
            try await encoder.setBitrate(.kilobitsPerSecond(300))
            try await encoder.setDegradation(.detail)
            try await opus.setBitrate(.kilobitsPerSecond(32))
            try await camera.setBrightness(1)
            try await camera.setContrast(2)
            try await camera.setSaturation(3)
            try await camera.setHue(4)
            try await camera.setControls("focus_absolute=30")
            for node in pipeline.plan.nodes.map(\.node) {
                let live =
                    NodeRegistry.builtIn.kind(named: node.kind)?.settings.filter(\.isChangeable).map(\.name) ?? []
                #expect(Set(live).isSubset(of: node.settings.keys), "\(node.kind)")
            }
            await pipeline.stop()
        }

        @Test func `nodes whose handles stay in a composition stay through an edit`() async throws {
            let (numbers, more) = (Collected<UInt32?>(), Collected<UInt32?>())
            let source = TestPattern(width: 320, height: 240, framesPerSecond: 60)
            let (first, second) = (Frames { numbers.append($0.barCode) }, Frames { more.append($0.barCode) })
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(on: clock) { source >>> first }
            clock.run(pipeline, emptying: pipeline.watch())
            try await pipeline.start()
            await eventually("frames") { numbers.count > 5 }
            let change = try await pipeline.apply {
                source >>> second
                source >>> first
            }
            #expect(change.description == "adds frames-2")
            #expect((first.name, second.name) == ("frames", "frames-2"))
            let start = numbers.count
            await eventually("frames on both") { numbers.count > start + 5 && more.count > 5 }
            #expect(try await pipeline.apply { source >>> second }.description == "removes frames")
            #expect(first.name == nil)
            #expect(await errorCode { _ = try first.statistics } == "node.not-running")
            // A handle that comes back is the node of its own function.
            let gone = numbers.count
            _ = try await pipeline.add { source >>> first }
            await eventually("frames again") { numbers.count > gone }
            await pipeline.stop()
            let all = numbers.all.prefix(gone).compactMap(\.self)
            #expect(zip(all, all.dropFirst()).allSatisfy { $1 == $0 + 1 })
        }

        @Test func `a branch is added and removed by its handles, with the nodes that only it needs`() async throws {
            let source = TestPattern(width: 320, height: 240)
            let (encoder, packets) = (VideoEncoder(.vp8), Collected<Int>())
            let output = RTPOutput { packets.append($0.bytes.count) }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(on: clock) { source >>> Null() }
            clock.run(pipeline)
            try await pipeline.start()
            #expect(
                try await pipeline.add { source >>> encoder >>> output }.description == "adds vp8-encoder, rtp-output")
            await eventually("packets") { packets.count > 2 }
            // The link to the encoder is there already.
            #expect(
                try await pipeline.add { source >>> encoder >>> Null().named("second") }.description == "adds second")
            for known in [Composition { source >>> encoder }, Composition { source }] {
                #expect(await errorCode { try await pipeline.add { known } } == "graph.invalid")
            }
            #expect(try await pipeline.add {}.isEmpty)
            #expect(try await pipeline.remove(output).description == "removes rtp-output")
            _ = try await pipeline.add { encoder >>> output }
            #expect(try await Set(pipeline.remove(encoder).removed) == ["second", "vp8-encoder", "rtp-output"])
            #expect(pipeline.plan.source.nodes.map(\.name) == ["test-pattern", "null"])
            #expect(await errorCode { try await pipeline.remove(encoder) } == "node.not-running")
            await pipeline.stop()
        }

        @Test func `the statistics of a handle are final after its pipeline has stopped`() async throws {
            let (source, counted) = (TestPattern(width: 320, height: 240), Frames { _ in })
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(on: clock) { source >>> counted }
            clock.run(pipeline)
            try await pipeline.start()
            await pipeline.stop()
            let all = pipeline.statistics.videoRenderers
            #expect(try counted.statistics == all["frames"])
            #expect(all["frames"] != nil)
            #expect(await errorCode { try await pipeline.remove(counted) } == "node.not-running")
        }

        @Test func `an edit before the start or during a pause says that the pipeline does not run`() async throws {
            let source = TestPattern(width: 320, height: 240)
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(on: clock) { source >>> Null() }
            #expect(await errorCode { try await pipeline.add { source >>> Null() } } == "pipeline.not-running")
            clock.run(pipeline)
            try await pipeline.start()
            await pipeline.pause()
            #expect(await errorCode { try await pipeline.add { source >>> Null() } } == "pipeline.not-running")
            await pipeline.stop()
            #expect(await errorCode { try await pipeline.add { source >>> Null() } } == "pipeline.stopped")
        }

        @Test func `a name of a running node is refused if its code would go on under it`() async throws {
            let source = TestPattern(width: 320, height: 240)
            let (pipeline, clock) = try await SteppedClock.running {
                source >>> Frames { _ in }.named("view")
                source >>> Null().named("counted")
            }
            defer { withExtendedLifetime(clock) {} }
            #expect(
                await errorCode { try await pipeline.apply { source >>> Frames { _ in }.named("view") } }
                    == "graph.invalid")
            #expect(
                await errorCode { try await pipeline.add { source >>> Null().named("counted") } } == "graph.invalid")
            #expect(try await pipeline.apply { source >>> Null().named("counted") }.description == "removes view")
            // Another handle takes over the name, unless the edit fails.
            let (before, after) = (Null().named("counted"), Snapshot(path: "/dev/null/never.png").named("counted"))
            #expect(try await pipeline.apply { source >>> before }.description == "changes nothing")
            #expect(await errorCode { try await pipeline.apply { source >>> after } } == "file.unwritable")
            #expect((before.name, after.name) == ("counted", nil))
            #expect(
                try await pipeline.apply { source >>> Mirroring().named("counted") >>> Null() }.description
                    == "adds null; replaces counted")
            #expect(before.name == nil)
            await pipeline.stop()
        }

        @Test func `a handle is in one pipeline at a time, and a call on one that is in none says so`() async throws {
            let (source, encoder) = (TestPattern(width: 320, height: 240), VideoEncoder(.vp8))
            let composition = Composition { source >>> encoder >>> Null() }
            #expect(await errorCode { try await encoder.setBitrate(.kilobitsPerSecond(500)) } == "node.not-running")
            #expect(throws: MediaError.self) { try encoder.requestKeyframe() }
            let clock = SteppedClock()
            let first = try await MediaPipeline(composition, limits: Limits(), clock: clock.clock)
            clock.run(first)
            try await first.start()
            #expect(await errorCode { _ = try await MediaPipeline(composition) } == "node.in-use")
            // The refused pipeline has taken no handle.
            try await encoder.setBitrate(.kilobitsPerSecond(500))
            let (other, second) = try await SteppedClock.running { TestPattern() >>> Null() }
            defer { withExtendedLifetime(second) {} }
            #expect(await errorCode { try await other.remove(encoder) } == "node.not-running")
            #expect(await errorCode { try await other.add { encoder >>> Null() } } == "node.in-use")
            #expect(encoder.name == "vp8-encoder")
            await other.stop()
            await first.stop()
            let again = try await MediaPipeline(composition)
            #expect(again.plan.node(encoder) != nil)
            #expect(first !== again)
            await again.stop()
        }

        @Test func `a composition is planned without a pipeline, and its handles stay free`() async throws {
            let (source, painting) = (TestPattern(), Painting(brush: Brush(luma: 1)))
            let plan = try await MediaPipeline.plan(
                Composition {
                    source >>> VideoEncoder(.vp8) >>> RTPOutput { _ in }
                    painting >>> Frames { _ in }
                })
            #expect(
                Set(plan.nodes.map(\.name)) == ["test-pattern", "vp8-encoder", "rtp-output", "painting", "frames"])
            #expect(source.name == nil)
        }

        @Test func `a pipeline that cannot be made takes no handle`() async throws {
            let source = TestPattern(width: 320, height: 240)
            #expect(
                await errorCode { _ = try await MediaPipeline { source >>> Recorder(path: "/none/a.mkv") >>> Null() } }
                    == "graph.invalid")
            #expect(source.name == nil)
            let pipeline = try await MediaPipeline { source >>> Null() }
            #expect(source.name == "test-pattern")
            await pipeline.stop()
        }

        @Test func `values of the program are nodes, each with the program's objects`() async throws {
            let (bright, dark, eraser) = (Brush(luma: 200), Brush(luma: 40), Brush(luma: 16))
            let (seen, erased) = (Collected<UInt8>(), Collected<UInt8>())
            let painting = Painting(fps: 15, brush: dark).node
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(on: clock) {
                Painting(brush: bright) >>> Frames { seen.append($0.luma) }
                painting >>> Looking(seen: seen)
                painting >>> Darkening(brush: eraser) >>> Looking(seen: erased)
            }
            #expect(pipeline.plan.nodes.map(\.node.name).contains("painting-2"))
            #expect(pipeline.plan.node("painting")?.node.settings == ["fps": 30, "light": 0])
            #expect(pipeline.plan.node(painting)?.node.settings == ["fps": 15, "light": 0])
            clock.run(pipeline)
            try await pipeline.start()
            await eventually("frames of both") { Set(seen.all) == [200, 40] && Set(erased.all) == [16] }
            try await painting.set(\.$light, to: 7)
            #expect(pipeline.plan.node(painting)?.node.settings["light"] == 7)
            await eventually("light") { seen.all.contains(47) }
            #expect(await errorCode { try await painting.set(\.$light, to: 101) } == "graph.invalid")
            #expect(await errorCode { try await painting.set(\.$fps, to: 5) } == "graph.setting-fixed")
            #expect(await errorCode { try await painting.set(\.lamp.$power, to: 2) } == "graph.invalid")
            await pipeline.stop()
            #expect(bright.strokes.withLock { $0 } > 0 && dark.strokes.withLock { $0 } > 0)
            #expect(eraser.strokes.withLock { $0 } > 0)
        }

        @Test func `a value has its own settings checked, and its objects released with its node`() async throws {
            let refused = await errorCode {
                _ = try await MediaPipeline { Painting(fps: 90, brush: Brush(luma: 1)) >>> Null() }
            }
            #expect(refused == "graph.invalid")
            let source = TestPattern(width: 320, height: 240)
            weak var kept: Brush?
            let (pipeline, clock) = try await SteppedClock.running { source >>> Null() }
            defer { withExtendedLifetime(clock) {} }
            try await {
                let brush = Brush(luma: 16)
                kept = brush
                let darkening = Darkening(brush: brush).node
                try await pipeline.add { source >>> darkening >>> Null().named("dark") }
                try await pipeline.remove(darkening)
            }()
            await eventually("the brush is gone") { kept == nil }
            await pipeline.stop()
        }

        @Test func `a kind of the program cannot have the name of a built-in one`() async {
            struct Scale: Processor {
                static let summary = "Not the built-in one"
                mutating func process(_ picture: inout MutableVideoFrame) {}
            }
            // It has the ports and settings of the built-in one.
            struct Function: Processor {
                static let name = "frame-function"
                static let summary = "Not the built-in one either"
                mutating func process(_ picture: inout MutableVideoFrame) {}
            }
            for node in [Composition { Scale().node }, Composition { Function().node }] {
                #expect(
                    await errorCode { _ = try await MediaPipeline { node } } == "node.name-taken")
            }
        }

        @Test func `elements as one node have settings`() async throws {
            let balance = ElementsNode(
                "balance", "Little colour", elements: ["videobalance"], exposing: ["colour": "videobalance.saturation"],
                takes: .rawVideo(width: nil, height: nil), gives: .rawVideo(width: nil, height: nil)
            ).node(["colour": 0.5])
            let (pipeline, clock) = try await SteppedClock.running { TestPattern() >>> balance >>> Null() }
            defer { withExtendedLifetime(clock) {} }
            try await balance.set("colour", to: 0.25)
            #expect(pipeline.plan.node(balance)?.node.settings == ["colour": 0.25])
            await pipeline.stop()
        }

        @Test func `a graph of names runs with the functions of handles`() async throws {
            let graph = MediaGraph(
                nodes: [Node("test-pattern", name: "source", settings: ["width": 320]), Node("frames", name: "view")],
                links: [
                    Link(from: PortReference(node: "source", port: ""), to: PortReference(node: "view", port: ""))
                ])
            let widths = Collected<Int>()
            let view = Frames { widths.append($0.width) }
            #expect(await errorCode { _ = try await MediaPipeline(graph, nodes: [view]) } == "graph.invalid")
            #expect(
                await errorCode { _ = try await MediaPipeline(graph, nodes: [view.named("other")]) } == "graph.invalid")
            #expect(await errorCode { _ = try await MediaPipeline(graph) } == "graph.invalid")
            let pipeline = try await MediaPipeline(
                graph, nodes: [view.named("view"), TestPattern(height: 100).named("source")])
            try await pipeline.start()
            await eventually("a frame") { widths.count > 0 }
            #expect(view.name == "view")
            #expect(pipeline.plan.node("source")?.node.settings == ["width": 320, "height": 100])
            await pipeline.stop()
        }

        @Test func `frames are pushed into a handle`() async throws {
            let (bypass, widths) = (Bypass(width: 64, height: 48, codec: .vp8), Collected<Int>())
            #expect(throws: MediaError.self) { try bypass.input }
            let pipeline = try await MediaPipeline { bypass >>> RTPOutput { widths.append($0.bytes.count) } }
            #expect(try bypass.input.statistics.dropped == 0)
            await pipeline.stop()
        }

        @Test func `each reader gets every event, also those before it`() async throws {
            let (source, null) = (TestPattern(width: 320, height: 240, frames: 3), Null())
            let pipeline = try await MediaPipeline { source >>> null }
            let early = pipeline.events
            try await pipeline.start()
            await eventually("its end") { pipeline.state == .ended }
            let late = pipeline.events
            await pipeline.stop()
            for events in [early, late, pipeline.events] {
                var heard: [String] = []
                for await event in events {
                    if case .firstFrame = event {
                        heard.append("first frame \(event.isAbout(null)) \(event.isAbout(source))")
                    }
                    if case .ended = event { heard.append("ended") }
                }
                #expect(heard == ["first frame true false", "ended"])
            }
        }

        @Test func `two readers get the same events`() async throws {
            let pipeline = try await MediaPipeline { TestPattern(width: 320, height: 240, frames: 3) >>> Null() }
            let readers = [pipeline.events, pipeline.events]
            try await pipeline.start()
            await eventually("its end") { pipeline.state == .ended }
            await pipeline.stop()
            for reader in readers {
                var names: [String] = []
                for await event in reader { names.append(String("\(event)".prefix { $0 != "(" })) }
                #expect(names == ["firstFrame", "ended"])
            }
        }

        @Test func `a late reader gets the latest events, but no request for a keyframe that was repeated since`() async
        {
            let reporter = Reporter(events: nil)
            for number in 0..<250 {
                reporter.warn(nil, "\(number)")
                reporter.keyframeNeeded("decoder")
            }
            let events = reporter.listen()
            reporter.close()
            var messages: [String] = []
            for await event in events { if case .warning(_, let message) = event { messages.append(message) } }
            #expect(messages == (150..<250).map { "\($0)" })
        }
    }
}

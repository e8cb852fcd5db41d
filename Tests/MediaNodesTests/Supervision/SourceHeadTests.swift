import Dispatch
import GStreamerKit
import Glibc
import MediaGraph
import Synchronization
import Testing
import TestSupport

@testable import MediaNodes

/// A camera that tests plug in, unplug and break. Its frames are white.
private final class MadeUpCamera: SourceDevice {
    struct Faults {
        var isPlugged = true
        var hangsInOpen = false
        var hangsInClose = false
        var failsToStart = false
    }

    private struct WeakChain {
        weak var chain: DeviceChain?
    }

    private struct State {
        var faults = Faults()
        var chain: DeviceChain?
        var output: SourceOutput?
        var made: [WeakChain] = []
        var isOpen = false
        var mostOpen = 0
        var opened = 0
    }

    static let gone = MediaError(code: MediaError.Code.cameraLost, message: "The camera stopped.")
    private let state = Mutex(State())
    /// Signalled to free a driver that hangs.
    private let release = DispatchSemaphore(value: 0)

    var opened: Int { state.withLock { $0.opened } }
    var living: Int { state.withLock { $0.made.count { $0.chain != nil } } }

    func set(_ change: (inout Faults) -> Void) { state.withLock { change(&$0.faults) } }

    func respond() {
        set { ($0.hangsInOpen, $0.hangsInClose) = (false, false) }
        release.signal()
    }

    /// Pulls the plug. The driver reports it.
    func unplug() {
        let output = state.withLock { state in
            state.faults.isPlugged = false
            return state.output
        }
        output?.fail(Self.gone)
    }

    func plugIn() { set { $0.isPlugged = true } }

    /// Stops the frames, and reports nothing.
    func freeze() {
        let chain = state.withLock { $0.chain }
        try? chain?.element("gate").set("drop-probability", 1.0)
    }

    func name(of candidate: Int) -> String { "camera \(candidate)" }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        let faults = state.withLock { $0.faults }
        if faults.hangsInOpen { release.wait() }
        if !faults.isPlugged {
            throw MediaError(code: MediaError.Code.cameraAbsent, message: "There is no camera.")
        }
        if faults.failsToStart { throw MediaError(code: MediaError.Code.cameraBusy, message: "It is in use.") }
        var plan = NodePlan(Node("lamp"))
        plan.add("videotestsrc", as: "source", ["is-live": true, "pattern": "white"])
        plan.append("identity", as: "gate")
        plan.appendFilter(
            RawFormat.video(.rawVideo(width: 64, height: 48, framesPerSecond: 100)), as: "format")
        var device = DevicePlan(name: "lamp", wish: "")
        device.take(plan)
        let chain = try DeviceChain(device, named: "lamp", on: .monotonic, for: output) { _, _ in Self.gone }
        state.withLock { state in
            #expect(!state.isOpen, "two are open")
            (state.isOpen, state.chain, state.output) = (true, chain, output)
            state.made.append(WeakChain(chain: chain))
            state.opened += 1
        }
        try chain.play()
    }

    func close() {
        let (chain, hangs) = state.withLock { state in
            defer { (state.chain, state.output, state.isOpen) = (nil, nil, false) }
            return (state.chain, state.faults.hangsInClose)
        }
        if hangs { release.wait() }
        chain?.pipeline.stop()
    }

    func isThere(_ candidate: Int) -> Bool { state.withLock { $0.faults.isPlugged } }

    func isAbsence(_ error: MediaError) -> Bool { error.code == MediaError.Code.cameraAbsent }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError { Self.gone }
}

/// A node with the made-up camera that its settings name.
private struct LampNode: NodeType, HeadedNode {
    static let cameras = Mutex<[String: MadeUpCamera]>([:])
    /// The formats that left the heads.
    static let formats = Collected<String>()
    let head: SourceHead?

    static let kind = NodeKind(
        "lamp", .capturer, "White frames", outputs: [Port("video", [.rawVideo], encodings: ["I420"])],
        settings: [SettingContract("away", .choice(["freeze", "slate"]), default: "freeze", "")])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        let format = MediaFormat.rawVideo(width: 64, height: 48, framesPerSecond: 100)
        SourceHead.plan(&plan, format, caps: RawFormat.video(format), latency: 0.01)
        plan.setOutput("video", format)
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let camera = cameras.withLock { $0[instance.name] }
        var limits = SourceSupervisor.Limits()
        (limits.quiet, limits.silent, limits.pause, limits.firstStandIn) = (0.1, 0.2, 0.4, 0.3)
        (limits.fill, limits.poll, limits.shortestBackoff, limits.longestBackoff) = (0.02, 0.02, 0.02, 0.1)
        (limits.eventBurst, limits.eventInterval, limits.firstFrame) = (1000, 0.01, 0.5)
        instance.element("source").source.watchEvents { event in
            if case .caps(let caps) = event { formats.append("\(instance.name) \(caps.summary)") }
        }
        return LampNode(
            head: SourceHead(
                instance, camera ?? MadeUpCamera(),
                [.video(of: instance)], limits: limits))
    }
}

/// A pipeline with a made-up camera.
private final class LampRun: Sendable {
    let camera = MadeUpCamera()
    let seen = Seen()
    let pipeline: MediaPipeline
    let name: String

    init(
        _ name: String, away: String = "freeze", isEncoded: Bool = false,
        _ faults: (inout MadeUpCamera.Faults) -> Void = { _ in }
    )
        async throws
    {
        self.name = name
        camera.set(faults)
        let camera = camera
        LampNode.cameras.withLock { $0[name] = camera }
        let graph = MediaGraph {
            Chain {
                Node("lamp", name: name, settings: ["away": .text(away)])
                if isEncoded {
                    Node.videoEncoder("encoder", codec: .vp8, bitrate: .kilobitsPerSecond(500))
                    Node.null("end")
                } else {
                    Node.frames("view")
                }
            }
        }
        pipeline = try await MediaPipeline(
            graph, bindings: seen.bindings(of: graph), registry: .builtIn.adding([LampNode.self]))
    }

    deinit { LampNode.cameras.withLock { _ = $0.removeValue(forKey: name) } }

    var status: SourceStatus? { pipeline.statistics.sources[name] }
    /// Brightness of the frames so far.
    var white: Int { seen.pictures.all.count { $0.brightness > 200 } }
    var grey: Int { seen.pictures.all.count { $0.brightness < 60 } }

    var events: [String] { seen.deviceEvents }

    /// Whether every frame is later than the one before.
    var isMonotonic: Bool {
        let times = seen.pictures.all.map(\.time)
        return zip(times, times.dropFirst()).allSatisfy { $0 < $1 }
    }

    func streams() async { await eventually("it streams") { self.status?.state == .streaming } }
}

extension MediaNodesTests {
    @Suite struct SourceHeadTests {
        @Test func `a source whose device comes late starts with a slate, and continues with the device`() async throws
        {
            let run = try await LampRun("late") { $0.isPlugged = false }
            try await run.pipeline.start()
            await eventually("a slate") { run.grey > 5 }
            #expect(run.white == 0)
            #expect(run.status?.state == .waiting || run.status?.state == .opening)
            #expect(run.status?.cause == "There is no camera.")
            run.camera.plugIn()
            await eventually("the device") { run.white > 20 }
            await run.pipeline.stop()
            #expect(run.events == ["waiting camera.absent", "returned"])
            #expect(run.isMonotonic && run.seen.failures.isEmpty)
            #expect(LampNode.formats.all.count { $0.hasPrefix("late ") } == 1, "one format")
        }

        @Test func `a source that is unplugged shows its last frame until it is back`() async throws {
            let run = try await LampRun("plug")
            try await run.pipeline.start()
            await eventually("frames") { run.white > 10 }
            #expect(run.grey == 0, "no slate flashes before the device opens")
            run.camera.unplug()
            await eventually("the loss is known") { run.events.contains("lost camera.lost") }
            let count = run.seen.pictures.count
            await eventually("the last frame is repeated") { run.seen.pictures.count > count + 10 }
            #expect(run.grey == 0 && run.status?.losses == 1 && run.status?.standIns ?? 0 > 0)
            run.camera.plugIn()
            await run.streams()
            await run.pipeline.stop()
            #expect(run.events == ["lost camera.lost", "returned"])
            #expect(run.isMonotonic)
        }

        @Test func `a slate shows on request, and encoders make a keyframe when the device is back`() async throws {
            let run = try await LampRun("slate", away: "slate", isEncoded: true)
            try await run.pipeline.start()
            await eventually("frames") { run.pipeline.statistics.encoders["encoder"]?.encoded ?? 0 > 30 }
            let before = run.pipeline.statistics.encoders["encoder"]?.keyframes
            #expect(before == 1)
            run.camera.unplug()
            await eventually("stand-ins") { run.status?.standIns ?? 0 > 10 }
            #expect(run.pipeline.statistics.encoders["encoder"]?.keyframes == before)
            run.camera.plugIn()
            await run.streams()
            await eventually("a keyframe") { run.pipeline.statistics.encoders["encoder"]?.keyframes ?? 0 > 1 }
            await run.pipeline.stop()
        }

        @Test func `a device that goes silent is closed and opened again`() async throws {
            let run = try await LampRun("silent")
            try await run.pipeline.start()
            await eventually("frames") { run.white > 10 }
            run.camera.freeze()
            await eventually("it is opened again") { run.camera.opened == 2 }
            await run.streams()
            await run.pipeline.stop()
            #expect(run.events == ["lost camera.lost", "returned"])
            #expect(run.isMonotonic)
        }

        @Test func `a driver that hangs while it opens delays neither the start nor the stop of the graph`()
            async throws
        {
            let run = try await LampRun("hung") { $0.hangsInOpen = true }
            try await run.pipeline.start()
            await eventually("a slate") { run.grey > 5 }
            await eventually("the driver is reported") { run.events == ["waiting camera.lost"] }
            let start = ContinuousClock.now
            await run.pipeline.stop()
            #expect(ContinuousClock.now - start < .seconds(6))
            #expect(run.camera.opened == 0)
            run.camera.respond()
            await eventually("the device is closed") { run.camera.living == 0 }
        }

        @Test func `an edit that needs its devices does not take a stand-in for one`() async throws {
            let run = try await LampRun("there")
            try await run.pipeline.start()
            let hung = MadeUpCamera()
            hung.set { $0.hangsInOpen = true }
            LampNode.cameras.withLock { $0["hanging"] = hung }
            defer { LampNode.cameras.withLock { _ = $0.removeValue(forKey: "hanging") } }
            let graph = run.pipeline.plan.source.adding {
                Chain {
                    Node("lamp", name: "hanging")
                    Node.null("end")
                }
            }
            let error = await #expect(throws: MediaError.self) {
                try await run.pipeline.apply(graph, bindings: NodeBindings(), within: 20, needsDevices: true)
            }
            #expect(error?.code == "camera.lost" && error?.node == "hanging")
            hung.respond()
            await run.pipeline.stop()
        }

        @Test func `a driver that hangs while it closes keeps the stand-in going, and is opened again when it returns`()
            async throws
        {
            let run = try await LampRun("closing") { $0.hangsInClose = true }
            try await run.pipeline.start()
            await eventually("frames") { run.white > 10 }
            run.camera.unplug()
            run.camera.plugIn()
            let count = run.seen.pictures.count
            await eventually("stand-ins") { run.seen.pictures.count > count + 20 }
            #expect(run.status?.state == .lost && run.camera.opened == 1)
            run.camera.respond()
            await run.streams()
            #expect(run.camera.opened == 2)
            await run.pipeline.stop()
            #expect(run.isMonotonic)
        }

        @Test func `a slate with text is drawn only while it shows`() async throws {
            let node = Node("camera", settings: ["slate-text": "<%H:%M> & back", "width": 320, "height": 180])
            let elements = try Slate.plan(
                NodeRequest(node, CameraNode.kind, usedOutputs: ["video"], environment: SystemEnvironment()),
                .rawVideo(width: 320, height: 180, framesPerSecond: 30))
            #expect(elements.map(\.factory) == ["videotestsrc", "capsfilter", "clockoverlay"])
            let slate = Slate(.rawVideo(width: 320, height: 180), elements, named: "test", on: .monotonic)
            let grey = try #require(slate.frame)
            #expect(slate.frame === grey && !slate.isDrawing)
            slate.show()
            await eventually("it is drawn") { slate.frame !== grey }
            #expect(slate.frame?.byteCount == grey.byteCount)
            slate.hide()
            await eventually("its elements end") { !slate.isDrawing }
            slate.end()
            #expect(slate.frame === grey)
        }

        @Test func `a device in use is waited for`() async throws {
            let run = try await LampRun("busy") { $0.failsToStart = true }
            try await run.pipeline.start()
            await eventually("it is reported") { run.events == ["waiting camera.busy"] }
            run.camera.set { $0.failsToStart = false }
            await run.streams()
            await run.pipeline.stop()
        }

        @Test func `fifty losses leave one stream of one format, and nothing else`() async throws {
            let run = try await LampRun("fifty")
            try await run.pipeline.start()
            await run.streams()
            let descriptors = fileNames(in: "/proc/self/fd").count
            for round in 1...50 {
                run.camera.unplug()
                await eventually("loss \(round)") { run.status?.losses == round }
                run.camera.plugIn()
                await eventually("frames again") { run.status?.state == .streaming }
            }
            #expect(run.camera.living == 1)
            #expect(fileNames(in: "/proc/self/fd").count <= descriptors + 2)
            #expect(LampNode.formats.all.count { $0.hasPrefix("fifty ") } == 1)
            await run.pipeline.stop()
            #expect(run.isMonotonic && run.seen.failures.isEmpty)
            await eventually("all chains are freed") { run.camera.living == 0 }
        }

        @Test func `a reader of the events gets them until the pipeline stops`() async throws {
            let run = try await LampRun("reader")
            let reader = Task { [events = run.pipeline.events] in
                var found: [String] = []
                for await event in events {
                    if case .deviceLost(let node, _) = event { found.append("lost \(node)") }
                    if case .deviceReturned(let node) = event { found.append("returned \(node)") }
                }
                return found
            }
            try await run.pipeline.start()
            await run.streams()
            run.camera.unplug()
            await eventually("loss") { run.status?.losses == 1 }
            run.camera.plugIn()
            await eventually("the return is reported") { run.events.last == "returned" }
            await run.pipeline.stop()
            #expect(await reader.value == ["lost reader", "returned reader"])
        }
    }
}

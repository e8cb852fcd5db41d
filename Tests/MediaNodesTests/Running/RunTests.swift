import Dispatch
import Glibc
import GStreamerKit
import MediaGraph
import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

/// An end of a route whose plan waits, like that of a slow device.
private struct SlowEnd: MediaNode {
    var handle: NodeHandle

    /// - Parameter asked: counts the plans.
    init(_ gate: Gate, asked: Collected<String>) {
        let null = NodeImplementation(NullNode.self)
        handle = NodeHandle(
            NodeImplementation(
                kind: NodeKind("slow-end", .renderer, "Waits", inputs: null.kind.inputs),
                plan: { (request) throws(MediaError) in
                    asked.append(request.name)
                    gate.wait()
                    return .sink(request)
                }, activate: { _ in nil }), [:])
    }
}

/// A source that delivers nothing.
private struct Silent: Capturer {
    static let summary = "Delivers nothing"

    func format() -> PictureFormat { PictureFormat(width: 64, height: 48, framesPerSecond: 30) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws { try await Task.sleep(for: .seconds(3600)) }
}

/// A source that says when it has ended.
private struct Leaving: Capturer {
    static let summary = "Takes a moment to end"
    var hasLeft = AtomicBool()

    func format() -> PictureFormat { PictureFormat(width: 64, height: 48, framesPerSecond: 60) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        defer { hasLeft.raise() }
        while true { try await output.draw { $0.fill(luma: 16) } }
    }
}

/// A source that fails after a few frames.
private struct Failing: Capturer {
    static let summary = "Fails"

    func format() -> PictureFormat { PictureFormat(width: 64, height: 48, framesPerSecond: 60) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        for _ in 0..<3 { try await output.draw { $0.fill(luma: 16) } }
        throw MediaError(code: "test.worn", message: "It is worn out.")
    }
}

extension MediaNodesTests {
    /// Pipelines that run to their end, and tasks that are cancelled.
    @Suite(.timeLimit(.minutes(1))) struct RunTests {
        private static func source() -> TestPattern { TestPattern(width: 320, height: 240) }

        private static func code(of task: Task<some Sendable, any Error>) async -> String? {
            await errorCode { _ = try await task.value }
        }

        // MARK: run

        @Test func `run returns when the sources have ended, and has stopped the pipeline`() async throws {
            let counted = Frames { _ in }
            let pipeline = try await MediaPipeline {
                TestPattern(width: 320, height: 240, framesPerSecond: 60, frames: 5) >>> counted
            }
            try await pipeline.run()
            #expect(pipeline.state == .stopped)
            #expect(try counted.statistics.framesRendered == 5)
            #expect(await errorCode { try await pipeline.run() } == "pipeline.stopped")
        }

        @Test func `run throws the error that ends the pipeline or prevents its start`() async throws {
            let worn = try await MediaPipeline { Failing() >>> Null() }
            #expect(await errorCode { try await worn.run() } == "test.worn")
            #expect(worn.state == .stopped)
            let folder = TemporaryFolder()
            let unwritable = try await MediaPipeline {
                Self.source() >>> VideoEncoder(.vp8) >>> Recorder(path: folder.file("a.mkv"))
            }
            rmdir(folder.path)
            #expect(await errorCode { try await unwritable.run() } == "file.unwritable")
            #expect(unwritable.state == .stopped)
        }

        @Test func `run returns when another task stops the pipeline, also while it starts`() async throws {
            for source in [Composition { Self.source() >>> Null() }, Composition { Silent() >>> Null() }] {
                let pipeline = try await MediaPipeline(source)
                let run = Task { try await pipeline.run() }
                await eventually("it runs") { pipeline.state == .running }
                await pipeline.stop()
                #expect(await Self.code(of: run) == nil)
            }
        }

        @Test func `when any of several stops returns, the sources have ended`() async throws {
            for _ in 0..<50 {
                let source = Leaving()
                let pipeline = try await MediaPipeline { source >>> Null() }
                try await pipeline.start()
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<4 {
                        group.addTask {
                            await pipeline.stop()
                            #expect(source.hasLeft.value)
                        }
                    }
                }
            }
        }

        @Test func `a cancelled run stops the pipeline and throws CancellationError`() async throws {
            for source in [Composition { Self.source() >>> Null() }, Composition { Silent() >>> Null() }] {
                let pipeline = try await MediaPipeline(source)
                let run = Task { try await pipeline.run() }
                await eventually("it runs") { pipeline.state == .running }
                run.cancel()
                #expect(await Self.code(of: run) == "cancelled")
                #expect(pipeline.state == .stopped)
            }
        }

        private static func action(of number: Int32) -> Int {
            var action = sigaction()
            sigaction(number, nil, &action)
            return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
        }

        @Test func `a signal ends all runs, and has its former effect afterwards`() async throws {
            let former = [SIGINT, SIGTERM].map(Self.action)
            let pipelines = [
                try await MediaPipeline { Self.source() >>> Null() }, try await MediaPipeline { Silent() >>> Null() },
            ]
            let runs = pipelines.map { pipeline in Task { try await pipeline.run() } }
            await eventually("they run") { pipelines.allSatisfy { $0.state == .running } }
            #expect([SIGINT, SIGTERM].map(Self.action) != former)
            kill(getpid(), SIGTERM)
            for run in runs { #expect(await Self.code(of: run) == nil) }
            #expect(pipelines.allSatisfy { $0.state == .stopped })
            #expect([SIGINT, SIGTERM].map(Self.action) == former)
        }

        @Test func `a run without signals leaves them alone`() async throws {
            let former = Self.action(of: SIGINT)
            let pipeline = try await MediaPipeline { Self.source() >>> Null() }
            let run = Task { try await pipeline.run(handlesSignals: false) }
            await eventually("it runs") { pipeline.state == .running }
            #expect(Self.action(of: SIGINT) == former)
            run.cancel()
            _ = await run.result
        }

        // MARK: Cancellation

        @Test func `a cancelled making ends at once, and frees the handles`() async throws {
            let (gate, asked, source) = (Gate(), Collected<String>(), Self.source())
            defer { gate.open() }
            let making = Task { try await MediaPipeline { source >>> SlowEnd(gate, asked: asked) } }
            let planning = Task {
                try await MediaPipeline.plan(Composition { Self.source() >>> SlowEnd(gate, asked: asked) })
            }
            await eventually("both are planned") { asked.count == 2 }
            making.cancel()
            planning.cancel()
            #expect(await Self.code(of: making) == "cancelled")
            #expect(await Self.code(of: planning) == "cancelled")
            #expect(source.name == nil)
            let pipeline = try await MediaPipeline { source >>> Null() }
            await pipeline.stop()
        }

        @Test func `a cancelled start stops the pipeline`() async throws {
            let (silent, end) = (Silent().node, Null())
            let pipeline = try await MediaPipeline { silent >>> end }
            let start = Task { try await pipeline.start() }
            await eventually("it starts") { pipeline.state == .running }
            start.cancel()
            #expect(await Self.code(of: start) == "cancelled")
            #expect(pipeline.state == .stopped)
            // The handles are free.
            let other = try await MediaPipeline { silent >>> end }
            let cancelled = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await other.start()
            }
            #expect(await Self.code(of: cancelled) == "cancelled")
            #expect(other.state == .stopped)
        }

        @Test func `a cancelled edit leaves the graph as it was, whether it waits, plans or is queued`() async throws {
            let (source, gate, asked) = (Self.source(), Gate(), Collected<String>())
            let (pipeline, clock) = try await SteppedClock.running { source >>> Null() }
            defer { withExtendedLifetime(clock) {} }
            let before = pipeline.plan
            // It waits for a first frame.
            let silent = Silent().node
            let waiting = Task { try await pipeline.add(within: 50) { silent >>> Null().named("silence") } }
            await eventually("it is built") { pipeline.graph.staged.count == 2 }
            waiting.cancel()
            #expect(await Self.code(of: waiting) == "cancelled")
            #expect(pipeline.graph.staged.isEmpty)
            // It is planned, and the next one is queued.
            let (slow, end) = (SlowEnd(gate, asked: asked), Null().named("end"))
            let planning = Task { try await pipeline.add(within: 50) { source >>> slow } }
            await eventually("it is planned") { asked.count == 1 }
            let queued = Task { try await pipeline.add(within: 50) { source >>> end } }
            await eventually("it is queued") { end.name == "end" }
            for edit in [queued, planning] {
                edit.cancel()
                #expect(await Self.code(of: edit) == "cancelled")
            }
            gate.open()
            #expect((silent.name, slow.name, end.name) == (nil, nil, nil))
            #expect(try await pipeline.add { source >>> end }.description == "adds end")
            #expect(try await pipeline.remove(end).description == "removes end")
            #expect(pipeline.plan.expanded == before.expanded)
            await pipeline.stop()
        }

        @Test func `an edit that a stop interrupts says so`() async throws {
            let source = Self.source()
            let (pipeline, clock) = try await SteppedClock.running { source >>> Null() }
            defer { withExtendedLifetime(clock) {} }
            let edit = Task { try await pipeline.add(within: 50) { Silent() >>> Null().named("silence") } }
            await eventually("it is built") { pipeline.graph.staged.count == 2 }
            await pipeline.stop()
            let error = await #expect(throws: MediaError.self) { try await edit.value }
            #expect(error?.code == "pipeline.stopped")
            #expect(error?.message == "The edit was not made, because the media pipeline was stopped meanwhile.")
        }

        // MARK: Settings during an edit

        @Test func `a live setting changes while an edit takes long, and stays after it`() async throws {
            let (source, gate, asked) = (Self.source(), Gate(), Collected<String>())
            let (encoder, end) = (VideoEncoder(.vp8), Null())
            let (pipeline, clock) = try await SteppedClock.running { source >>> encoder >>> end }
            defer { withExtendedLifetime(clock) {} }
            let edit = Task { try await pipeline.add(within: 50) { source >>> SlowEnd(gate, asked: asked) } }
            await eventually("it is planned") { asked.count == 1 }
            try await encoder.setBitrate(.kilobitsPerSecond(321))
            #expect(try encoder.statistics.targetBitsPerSecond == 321_000)
            #expect(asked.count == 1 && pipeline.plan.node("slow-end") == nil)
            gate.open()
            #expect(try await edit.value.description == "adds slow-end")
            #expect(pipeline.plan.node(encoder)?.node.settings == ["bitrate": 321_000])
            #expect(pipeline.plan.source.node("vp8-encoder")?.settings == ["bitrate": 321_000])
            #expect(try encoder.statistics.targetBitsPerSecond == 321_000)
            await pipeline.stop()
        }

        @Test func `a live setting goes over to the node that an edit makes in place of the old one`() async throws {
            let (source, gate, asked) = (Self.source(), Gate(), Collected<String>())
            let encoder = VideoEncoder(.vp8)
            let (pipeline, clock) = try await SteppedClock.running { source >>> encoder >>> Null() }
            defer { withExtendedLifetime(clock) {} }
            let edit = Task {
                try await pipeline.apply(within: 50) {
                    source >>> Scale(width: 160, height: 120) >>> encoder >>> Null().named("end")
                    source >>> SlowEnd(gate, asked: asked)
                }
            }
            await eventually("it is planned") { asked.count == 1 }
            try await encoder.setBitrate(.kilobitsPerSecond(321))
            gate.open()
            #expect(try await edit.value.description.contains("replaces vp8-encoder"))
            #expect(pipeline.plan.node(encoder)?.node.settings == ["bitrate": 321_000])
            #expect(try encoder.statistics.targetBitsPerSecond == 321_000)
            await pipeline.stop()
        }

        @Test func `a setting of a node that an edit has removed or replaced is refused`() async throws {
            let (source, gate, asked) = (Self.source(), Gate(), Collected<String>())
            let (first, second) = (Mirroring(), Mirroring(.vertical))
            let (pipeline, clock) = try await SteppedClock.running { source >>> first.named("turned") >>> Null() }
            defer { withExtendedLifetime(clock) {} }
            let edit = Task {
                try await pipeline.apply(within: 50) {
                    source >>> second.named("turned") >>> Null().named("end")
                    source >>> SlowEnd(gate, asked: asked)
                }
            }
            await eventually("it is planned") { asked.count == 1 }
            // Each call is about the node of its own handle.
            try await first.setDirection(.none)
            #expect(await errorCode { try await second.setDirection(.none) } == "node.not-running")
            gate.open()
            _ = try await edit.value
            #expect(await errorCode { try await first.setDirection(.none) } == "node.not-running")
            #expect(pipeline.plan.node(second)?.node.settings == ["direction": "vertical"])
            try await second.setDirection(.horizontal)
            // A call that was checked before the edit finds another node.
            let stranger = ObjectIdentifier(first.handle.identity)
            #expect(
                await errorCode { try await pipeline.set("turned", "direction", to: "vertical", of: stranger) }
                    == "node.not-running")
            #expect(pipeline.plan.node(second)?.node.settings == ["direction": "horizontal"])
            await pipeline.stop()
        }
    }
}

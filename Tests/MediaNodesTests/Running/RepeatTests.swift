import GStreamerKit
import Glibc
import MediaGraph
import MediaNodes
import TestFixtures
import Testing
import TestSupport

@testable import MediaTesting

/// A weak reference to a pipeline.
private struct WeakPipeline: Sendable {
    weak var value: MediaPipeline?

    init(_ value: MediaPipeline) { self.value = value }
}

/// Runs rounds in a process of their own, because resources of other tests would count too.
enum Repeated {
    static func say(_ text: String) {
        let line = Array("\(text)\n".utf8)
        write(STDERR_FILENO, line, line.count)
    }

    /// Ends the process as failed, with the reason, if the condition does not hold.
    static func demand(_ holds: Bool, _ what: String) {
        if holds { return }
        say(what)
        exit(EXIT_FAILURE)
    }

    /// Prints the process's output.
    static func show(_ result: ExitTest.Result?) {
        print(String(decoding: result?.standardErrorContent ?? [], as: UTF8.self), terminator: "")
    }

    /// The created pipelines, to check that they are freed.
    private static let pipelines = Collected<WeakPipeline>()

    /// Remembers a pipeline without retaining it.
    @discardableResult
    static func seen(_ pipeline: MediaPipeline) -> MediaPipeline {
        pipelines.append(WeakPipeline(pipeline))
        return pipeline
    }

    static func call() async throws {
        let loopback = try await Loopback(codec: .vp8, frames: 0)
        try await loopback.start()
        let deadline = ContinuousClock.now + .seconds(10)
        while loopback.rendered.count < 3, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(3))
        }
        demand(loopback.rendered.count >= 3, "no frame arrived")
        await loopback.stop()
    }

    static func file() async throws {
        let pipeline = try await MediaPipeline(
            MediaGraph {
                Chain {
                    Node.file("clip", path: Checkout.clip)
                    Node.null("video")
                }
                Chain(from: "clip", port: "audio") { Node.null("sound") }
            })
        try await seen(pipeline).start()
        await pipeline.stop()
    }

    /// Two recordings of a few frames, with a keyframe for which the encoder restarts.
    static func recording() async throws {
        let folder = TemporaryFolder()
        let pipeline = try await MediaPipeline(
            MediaGraph {
                Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 120)
                Node.recorder("matroska", path: "\(folder.path)/a.mkv")
                Node.recorder("hls", path: "\(folder.path)/a.m3u8")
                Chain(from: "pattern", port: "video") {
                    Node("av1-encoder", name: "encoder")
                    Join("matroska", port: "video")
                }
                Chain(from: "pattern", port: "video") { Join("hls", port: "video") }
                Chain(from: "pattern", port: "audio") { Join("hls", port: "audio") }
            })
        try await seen(pipeline).start()
        try pipeline.requestKeyframe("encoder")
        let deadline = ContinuousClock.now + .seconds(10)
        func frames() -> Int { pipeline.statistics.recorders.values.map(\.frames).min() ?? 0 }
        while frames() < 10, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(3))
        }
        demand(frames() >= 10, "nothing was recorded: \(pipeline.statistics.recorders)")
        await pipeline.stop()
    }

    static func failure() async throws {
        // The file is removed between planning and starting.
        let folder = TemporaryFolder()
        let path = folder.path + "/clip.mp4"
        symlink(Checkout.clip, path)
        let pipeline = try await MediaPipeline(
            MediaGraph {
                Chain {
                    Node.file(path: path)
                    Node.null()
                }
            })
        unlink(path)
        do {
            try await seen(pipeline).start()
            demand(false, "a missing file was played")
        } catch {
            demand((error as? MediaError)?.code == "file.not-found", "\(error)")
        }
    }

    /// Runs `body` and ends the process as failed if it leaks.
    ///
    /// `make test` makes a few rounds and counts unfreed objects of GStreamer and ours: one object per round is a leak.
    /// `make soak` makes so many that memory shows it too. It may grow by `kilobytes`: more than the 16 MB that the
    /// allocator takes at a time for a codec's first thread, less than a leaked frame per round.
    static func judge(soak rounds: Int, kilobytes: Int, _ body: () async throws -> Void) async throws {
        // Threads of Swift's pool and of Dispatch start and end; a leak would be one or more per round.
        let allowed = Allowance(descriptors: 2, threads: 6, bytes: kilobytes * 1024)
        if Soak.isOn {
            let growth = try await Growth.measured(warmUp: 40, rounds: rounds, allowed, Settling(), body)
            say(growth.words)
            demand(growth.isFlat, "something stays behind")
        } else {
            try await count(body)
        }
        let leaked = { pipelines.all.count { $0.value != nil } }
        demand(await holds { leaked() == 0 }, "\(leaked()) pipelines are never freed")
    }

    /// Must come first if other code than the rounds uses GStreamer.
    static func trace() {
        if !Soak.isOn { ObjectLedger.trace() }
    }

    /// Memory is not judged: in so few rounds it shows only caches and allocators.
    private static func count(_ body: () async throws -> Void) async throws {
        let rounds = 12
        let allowed = Allowance(descriptors: 2, threads: 6, bytes: .max)
        trace()
        // The first rounds fill caches.
        for _ in 0..<3 { try await body() }
        guard let ledger = ObjectLedger() else { return demand(false, "GStreamer's tracer is not there") }
        let before = Holdings.now
        for _ in 0..<rounds { try await body() }
        let more = { ledger.living.filter { $0.value >= rounds } }
        demand(await holds { more().isEmpty }, "in \(rounds) rounds these were never freed: \(more())")
        let after = await Holdings.settled(before, allowed)
        let growth = Growth(rounds: rounds, before: before, after: after, allowed: allowed)
        say(growth.words)
        demand(growth.isFlat, "something stays behind")
    }

    /// Waits for a condition: ending threads free their resources a moment later. Returns whether it holds.
    static func holds(_ condition: () -> Bool) async -> Bool {
        let deadline = ContinuousClock.now + .seconds(10)
        while !condition(), ContinuousClock.now < deadline { try? await Task.sleep(for: .milliseconds(20)) }
        return condition()
    }
}

extension MediaNodesTests {
    @Suite struct RepeatTests {
        @Test("Calls leak no thread, descriptor or memory")
        func calls() async {
            // One leaked raw frame per round would be 46 MB.
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Repeated.judge(soak: 100, kilobytes: 40_000) { try await Repeated.call() }
            }
            Repeated.show(result)
        }

        @Test("Files that are opened and closed leak no thread, descriptor or memory")
        func files() async {
            // One leaked raw frame per round would be 138 MB.
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Repeated.judge(soak: 100, kilobytes: 60_000) { try await Repeated.file() }
            }
            Repeated.show(result)
        }

        @Test("Recordings leak no thread, descriptor or memory")
        func recordings() async {
            // One leaked AV1 encoder per round would be more than 200 MB.
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Repeated.judge(soak: 100, kilobytes: 60_000) { try await Repeated.recording() }
            }
            Repeated.show(result)
        }

        @Test("Failed starts leak no thread, descriptor or memory")
        func failures() async {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try await Repeated.judge(soak: 100, kilobytes: 16_000) { try await Repeated.failure() }
            }
            Repeated.show(result)
        }

        @Test("Failed edits leave nothing behind in the running pipeline")
        func failedEdits() async {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                Repeated.trace()
                let graph = MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Node.null("end")
                    }
                }
                let wrong = graph.adding {
                    Chain(from: "pattern") {
                        Node("element:identity", settings: ["error-after": 1])
                        Node.null("other")
                    }
                }
                let pipeline = try await MediaPipeline(graph)
                try await pipeline.start()
                try await Repeated.judge(soak: 100, kilobytes: 16_000) {
                    do {
                        try await pipeline.apply(wrong)
                        Repeated.demand(false, "a failing branch was taken")
                    } catch let error as MediaError {
                        Repeated.demand(error.code == MediaError.Code.elementFailed, "\(error)")
                    }
                }
                await pipeline.stop()
            }
            Repeated.show(result)
        }

        @Test("An echo canceller that edits add and remove leaves nothing behind in the running pipeline")
        func echoCancellers() async {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                Repeated.trace()
                let plain = MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Node.null("seen")
                    }
                    Chain(from: "pattern", port: "audio") { Node.null("heard") }
                }
                let cancelled = plain.adding {
                    Chain(from: "pattern", port: "audio") {
                        Tee { Join("echo", port: "played") }
                        Node("echo-cancel", name: "echo")
                        Node.null("clean")
                    }
                }
                let pipeline = try await MediaPipeline(plain)
                try await pipeline.start()
                guard let ledger = ObjectLedger() else {
                    return Repeated.demand(false, "GStreamer's tracer is not there")
                }
                let rounds = 4
                for _ in 0..<rounds {
                    try await pipeline.apply(cancelled)
                    try await pipeline.apply(plain)
                }
                let living = { ledger.living["GstWebrtcEchoProbe"] ?? 0 }
                Repeated.demand(
                    await Repeated.holds { living() == 0 }, "\(living()) of \(rounds) probes were never freed")
                await pipeline.stop()
            }
            Repeated.show(result)
        }

        @Test("A pipeline that is released while it runs stops by itself")
        func released() async throws {
            let batches = Collected<MediaTime>()
            var bindings = NodeBindings()
            bindings.rtpOutputs["video"] = { batches.append($0.captureTime) }
            let graph = MediaGraph {
                Chain {
                    Node.testPattern()
                    Node.videoEncoder()
                    Node.rtpOutput("video")
                }
            }
            var pipeline: MediaPipeline? = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline?.start()
            await eventually("a few frames") { batches.count > 3 }
            pipeline = nil
            var last = (count: 0, since: ContinuousClock.now)
            await eventually("half a second without a frame") {
                if batches.count != last.count { last = (batches.count, .now) }
                return ContinuousClock.now - last.since > .milliseconds(500)
            }
        }
    }
}

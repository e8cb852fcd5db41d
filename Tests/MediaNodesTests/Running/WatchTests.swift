import GStreamerKit
import MediaGraph
import MediaNodes
import TestFixtures
import Testing
import TestSupport

extension MediaNodesTests {
    @Suite struct WatchTests {
        @Test("Statistics count every node's input and output, and its latency")
        func counts() async throws {
            let sent = Collected<Int>()
            var bindings = NodeBindings()
            let hasEnded = AtomicBool()
            let clock = SteppedClock()
            bindings.rtpOutputs["sent"] = { sent.append($0.count) }
            bindings.events = { if case .ended = $0 { hasEnded.raise() } }
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240, framesPerSecond: 60, frames: 60)
                        Tee { Node.null("preview") }
                        Node.videoEncoder("encoder", codec: .vp8)
                        Node.rtpOutput("sent")
                    }
                }, bindings: bindings, on: clock)
            let watch = pipeline.watch()
            clock.run(pipeline, frames: 60, emptying: watch)
            try await pipeline.start()
            // A frame in transit when a pipeline stops is counted upstream alone, so let all of them arrive.
            await eventually("the end") { hasEnded.value }
            await pipeline.stop()
            let nodes = Dictionary(uniqueKeysWithValues: watch.sample().map { ($0.node, $0) })
            let pattern = try #require(nodes["pattern"])
            let encoder = try #require(nodes["encoder"])
            #expect(nodes.count == 4)
            #expect(pattern.framesIn == 0)
            #expect(pattern.format == .rawVideo(width: 320, height: 240, framesPerSecond: 60))
            #expect(pattern.framesOut == 60)
            #expect(pattern.framesOut == encoder.framesIn)
            #expect(encoder.framesIn == encoder.framesOut + encoder.dropped.map(\.frames).reduce(0, +))
            #expect(encoder.dropped.map(\.rule) == [.dropOldest])
            #expect(encoder.format?.encoding == "vp8")
            #expect(try #require(encoder.secondsInNode) > 0)
            #expect(try #require(encoder.latency) >= (try #require(pattern.latency)))
            let preview = try #require(nodes["preview"])
            #expect(preview.framesOut + preview.dropped.map(\.frames).reduce(0, +) == pattern.framesOut)
            // A video frame counts once, however many packets carry it.
            let packets = try #require(nodes["sent"])
            #expect(packets.framesOut == packets.framesIn)
            #expect(sent.all.reduce(0, +) > packets.framesOut)
        }

        @Test("The frames and the audio buffers of a source are counted apart")
        func outputs() async throws {
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 64, height: 64, framesPerSecond: 10)
                        Node.null("frames")
                    }
                    Chain(from: "pattern", port: "audio") { Node.null("sound") }
                }, on: clock)
            let watch = pipeline.watch()
            @Sendable func count(_ node: String) -> NodeStatistics? { watch.sample().first { $0.node == node } }
            clock.run(pipeline, sources: 2) { count("frames")?.framesIn ?? 0 < 10 }
            try await pipeline.start()
            await eventually("a second") { count("frames")?.framesIn ?? 0 >= 10 }
            await pipeline.stop()
            let pattern = try #require(count("pattern"))
            #expect(pattern.outputs.keys.sorted() == ["audio", "video"])
            #expect(pattern.outputs["video"] == count("frames")?.framesIn)
            #expect(pattern.framesOut == pattern.outputs.values.reduce(0, +))
            #expect(count("frames")?.outputs == [:])
        }

        @Test(
            "A frame is older than its time in an encoder, and a recorder writes no more frames than it takes",
            arguments: ["take.mkv", "take.mp4"])
        func recorder(file: String) async throws {
            let folder = TemporaryFolder()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 64, height: 64, framesPerSecond: 60)
                        Node.videoEncoder("encoder", codec: .h264)
                        Node.recorder("recorder", path: "\(folder.path)/\(file)")
                    }
                })
            let watch = pipeline.watch()
            func counted(_ node: String) -> NodeStatistics? { watch.sample().first { $0.node == node } }
            try await pipeline.start()
            await eventually("frames") { counted("recorder")?.framesIn ?? 0 > 30 }
            let encoder = try #require(counted("encoder"))
            #expect(try #require(encoder.latency) >= (try #require(encoder.secondsInNode)))
            await pipeline.stop()
            let counted = try #require(counted("recorder"))
            #expect(counted.framesOut > 0 && counted.framesOut <= counted.framesIn, "\(counted)")
        }

        @Test("A level meter's statistics show the level of its audio")
        func levels() async throws {
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 64, height: 64)
                        Node.null("pictures")
                    }
                    Chain(from: "pattern", port: "audio") {
                        Node("level", name: "meter")
                        Node.null("sound")
                    }
                })
            let watch = pipeline.watch()
            try await pipeline.start()
            func meter() -> NodeStatistics? { watch.sample().first { $0.node == "meter" } }
            await eventually("the tone") { meter()?.levels.first.map { $0.rootMeanSquare > -60 } == true }
            await pipeline.stop()
            #expect(meter()?.levels.count == 2)
            #expect(watch.sample().filter { !$0.levels.isEmpty }.map(\.node) == ["meter"])
        }

        @Test("A queue that blocks drops nothing, even if a frame waits upstream")
        func waitingQueue() async throws {
            let gate = Gate()
            var bindings = NodeBindings()
            bindings.frames["slow"] = { _ in gate.wait() }
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.file("clip", path: Checkout.clip)
                        Node.frames("slow")
                    }
                }, bindings: bindings)
            let watch = pipeline.watch()
            try await pipeline.start()
            func file() -> NodeStatistics? { watch.sample().first { $0.node == "clip" } }
            await eventually("a full queue") { file().map { $0.queued >= 1 } == true }
            let drops = file()?.dropped.filter { $0.rule == .wait } ?? []
            gate.open()
            await pipeline.stop()
            #expect(!drops.isEmpty && drops.allSatisfy { $0.frames == 0 })
        }

        @Test("A node added by an edit reports how long it has been counted")
        func comesLater() async throws {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 64, height: 64)
                    Node.null("first")
                }
            }
            let pipeline = try await MediaPipeline(graph)
            let watch = pipeline.watch()
            try await pipeline.start()
            try await pipeline.apply(graph.adding { Chain(from: "pattern") { Node.null("second") } }, within: 8)
            let nodes = Dictionary(uniqueKeysWithValues: watch.sample().map { ($0.node, $0) })
            await pipeline.stop()
            let (first, second) = (try #require(nodes["first"]), try #require(nodes["second"]))
            #expect(second.secondsCounted < first.secondsCounted)
            #expect(second.framesIn < first.framesIn)
        }

        @Test("Encoded input is counted without decoding")
        func encoded() async throws {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 320, height: 240)
                    Node.videoEncoder("encoder")
                    Node.null("pictures")
                }
                Chain(from: "pattern", port: "audio") {
                    Node.opusEncoder()
                    Node.null("sound")
                }
            }
            let pipeline = try await MediaPipeline(graph)
            #expect(pipeline.plan.nodes.count == 5)
            try await pipeline.start()
            await eventually("half a second of both") {
                let statistics = pipeline.statistics
                return statistics.videoRenderers["pictures"]?.framesRendered ?? 0 >= 15
                    && statistics.audioRenderers["sound"]?.secondsRendered ?? 0 >= 0.5
            }
            await pipeline.stop()
        }

        @Test("Drops of a slow branch's queue are counted by rule")
        func drops() async throws {
            let gate = Gate()
            var bindings = NodeBindings()
            bindings.frames["slow"] = { _ in gate.wait() }
            let hasEnded = AtomicBool()
            let clock = SteppedClock()
            bindings.events = { if case .ended = $0 { hasEnded.raise() } }
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240, framesPerSecond: 60, frames: 60)
                        Tee { Node.null("quick") }
                        Node.frames("slow")
                    }
                }, bindings: bindings, on: clock)
            let watch = pipeline.watch()
            clock.run { [weak pipeline] steps in
                pipeline?.statistics.videoRenderers["quick"]?.framesRendered == steps
            }
            try await pipeline.start()
            func sample() -> [String: NodeStatistics] {
                Dictionary(uniqueKeysWithValues: watch.sample().map { ($0.node, $0) })
            }
            func drops() -> Int { sample()["slow"]?.dropped.first?.frames ?? 0 }
            func passed() -> Int { sample()["quick"]?.framesOut ?? 0 }
            // Meanwhile the other branch continues.
            await eventually("frames that are dropped, and frames that pass") { drops() == 57 && passed() == 60 }
            let nodes = sample()
            gate.open()
            // A frame in transit when a pipeline stops is neither passed nor dropped, so let all of them arrive.
            await eventually("the end") { hasEnded.value }
            let ended = sample()
            await pipeline.stop()
            let drop = try #require(nodes["slow"]?.dropped.first)
            #expect(drop.queue == "branch-in")
            #expect(drop.rule == .dropOldest)
            // One frame was shown, and two waited.
            #expect(drop.frames == 57)
            #expect(ended["pattern"]?.framesOut == 60)
            #expect(ended["slow"]?.framesOut == 3)
            let quick = try #require(ended["quick"])
            #expect(quick.framesOut == 60)
            #expect(quick.dropped.allSatisfy { $0.frames == 0 })
        }
    }
}

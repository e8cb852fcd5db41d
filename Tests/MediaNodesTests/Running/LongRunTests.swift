import Glibc
import GStreamerKit
import MediaGraph
import TestSupport
@testable import MediaNodes
import Synchronization
import Testing

/// Branches that edits add, change and remove beside two permanent ones.
private struct RandomBranches {
    /// Kinds of new branches; the number makes their names unique.
    enum Shape: CaseIterable {
        case frames
        case scaled
        case encoded
        case decoded
    }

    struct Branch {
        let number: Int
        var shape: Shape
        var width: Int
    }

    private static let most = 4

    private var random: Seeded
    private(set) var branches: [Branch] = []
    private var last = 0

    init(seed: UInt64) {
        random = Seeded(seed)
    }

    /// Adds, removes or replaces one branch. Returns its name.
    mutating func change() -> String {
        let choices = branches.isEmpty ? 0...0 : branches.count == Self.most ? 1...2 : 0...2
        switch Int.random(in: choices, using: &random) {
        case 0:
            last += 1
            branches.append(Branch(number: last, shape: shape(), width: width()))
            return "add \(last) \(branches.last?.shape ?? .frames)"
        case 1:
            let gone = branches.remove(at: Int.random(in: branches.indices, using: &random))
            return "remove \(gone.number) \(gone.shape)"
        default:
            let index = Int.random(in: branches.indices, using: &random)
            branches[index].shape = shape()
            branches[index].width = width()
            return "replace \(branches[index].number) by \(branches[index].shape)"
        }
    }

    private mutating func shape() -> Shape { Shape.allCases.randomElement(using: &random) ?? .frames }
    private mutating func width() -> Int { [80, 96, 128].randomElement(using: &random) ?? 80 }

    /// The two permanent branches, and the current others.
    var graph: MediaGraph {
        branches.reduce(Self.staying) { graph, branch in
            let name = "branch\(branch.number)"
            return graph.adding {
                switch branch.shape {
                case .frames:
                    Chain(from: "pattern") { Node.frames("\(name)-end") }
                case .scaled:
                    Chain(from: "pattern") {
                        Node.scale("\(name)-scale", width: branch.width, height: 96)
                        Node.frames("\(name)-end")
                    }
                case .encoded:
                    Chain(from: "pattern") {
                        Node.videoEncoder("\(name)-encoder", codec: .vp8)
                        Node.rtpOutput("\(name)-end")
                    }
                case .decoded:
                    // From the permanent encoder: encoded media, beginning with a keyframe.
                    Chain(from: "encoder") {
                        Node.videoDecoder("\(name)-decoder")
                        Node.frames("\(name)-end")
                    }
                }
            }
        }
    }

    static let staying = MediaGraph {
        Chain {
            Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 30)
            Tee { Node.frames("raw") }
            Node.videoEncoder("encoder", codec: .vp8)
            Node.videoDecoder("decoder")
            Node.frames("decoded")
        }
    }

    /// Functions for every possible branch.
    var bindings: NodeBindings {
        var bindings = NodeBindings()
        for branch in branches {
            switch branch.shape {
            case .frames, .scaled, .decoded: bindings.frames["branch\(branch.number)-end"] = { _ in }
            case .encoded: bindings.rtpOutputs["branch\(branch.number)-end"] = { _ in }
            }
        }
        return bindings
    }
}

extension MediaNodesTests {
    @Suite struct LongRunTests {
        @Test("Starts and stops leak no thread, descriptor or memory")
        func starts() async {
            // One leaked raw frame of 160x120 per round would be 28 MB, one leaked kilobyte 1 MB.
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                let graph = MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 120)
                        Tee { Node.null("preview") }
                        Node.videoEncoder("encoder", codec: .vp8)
                        Node.videoDecoder()
                        Node.null("end")
                    }
                }
                try await Repeated.judge(soak: 1000, kilobytes: 16_000) {
                    let pipeline = try await Repeated.seen(MediaPipeline(graph))
                    try await pipeline.start()
                    await pipeline.stop()
                }
            }
            Repeated.show(result)
        }

        @Test("Edits of a running graph leak no thread, descriptor or memory")
        func edits() async {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                Repeated.trace()
                let plain = MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120, framesPerSecond: 120)
                        Node.null("preview")
                    }
                }
                let encoding = plain.adding {
                    Chain(from: "pattern") {
                        Node.videoEncoder("encoder", codec: .vp8)
                        Node.videoDecoder()
                        Node.null("end")
                    }
                }
                let pipeline = try await MediaPipeline(plain)
                try await pipeline.start()
                let isEncoding = AtomicBool()
                try await Repeated.judge(soak: 1000, kilobytes: 16_000) {
                    try await pipeline.apply(isEncoding.exchange(!isEncoding.value) ? plain : encoding, within: 10)
                }
                await pipeline.stop()
            }
            Repeated.show(result)
        }

        @Test("A hundred random edits cost the remaining branches no frame", arguments: [1, 2] as [UInt64])
        func randomEdits(seed: UInt64) async throws {
            let raw = Collected<UInt32>()
            let decoded = Collected<UInt32>()
            var bindings = NodeBindings()
            bindings.frames["raw"] = { if let number = $0.barCode { raw.append(number) } }
            bindings.frames["decoded"] = { if let number = $0.barCode { decoded.append(number) } }
            let failures = Collected<String>()
            bindings.events = { if case .failed(let error) = $0 { failures.append(error.message) } }
            let pipeline = try await MediaPipeline(RandomBranches.staying, bindings: bindings)
            let watch = pipeline.watch()
            try await pipeline.start()
            await eventually("the first frames") { raw.count > 3 && decoded.count > 3 }
            var branches = RandomBranches(seed: seed)
            for _ in 0..<100 {
                let change = branches.change()
                do {
                    try await pipeline.apply(branches.graph, bindings: branches.bindings, within: 10)
                } catch {
                    Issue.record("\(change): \(error)")
                    break
                }
            }
            let (rawSoFar, decodedSoFar) = (raw.count, decoded.count)
            await eventually("both go on") { raw.count > rawSoFar + 5 && decoded.count > decodedSoFar + 5 }
            let statistics = watch.sample()
            await pipeline.stop()
            #expect(failures.all == [])
            // Frames that a queue dropped because the machine was busy were lost by rule, not by an edit.
            expectUnbroken("raw", raw.all, dropped: statistics, of: ["raw"])
            expectUnbroken("decoded", decoded.all, dropped: statistics, of: ["encoder", "decoded"])
        }

        private func expectUnbroken(
            _ name: String, _ numbers: [UInt32], dropped statistics: [NodeStatistics], of nodes: Set<String>
        ) {
            #expect(numbers == Array(Set(numbers)).sorted(), "\(name): in order, each once")
            guard let first = numbers.first, let last = numbers.last else { return }
            let missing = Int(last - first) + 1 - numbers.count
            let dropped = statistics.filter { nodes.contains($0.node) }.flatMap(\.dropped).map(\.frames).reduce(0, +)
            #expect(missing <= dropped, "\(name): \(missing) missing, \(dropped) dropped by queues")
            if missing > 0 { print("\(name): \(missing) of \(numbers.count) dropped by a queue of a busy machine") }
        }

        @Test("Frames of files and live sources reach the encoder in their original memory")
        func noCopies() async throws {
            try await expectNoCopy(
                Node.file("source", path: Checkout.clip), written: { $0.element("video-entry").sink })
            try await expectNoCopy(
                Node.testPattern("source", width: 320, height: 240), written: { $0.element("picture").source })
        }

        private func expectNoCopy(_ source: Node, written: (NodeInstance) -> Pad) async throws {
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        source
                        Tee { Node.null("preview") }
                        Node.videoEncoder("encoder", codec: .vp8)
                        Node.rtpOutput("sent")
                    }
                }, bindings: Self.sending)
            let before = Collected<UInt>()
            let after = Collected<UInt?>()
            let source = try #require(pipeline.graph.node("source"))
            let encoder = try #require(pipeline.graph.node("encoder"))
            written(source).onBuffer { buffer in
                if let identity = buffer.memoryIdentity { before.append(identity) }
                return .pass
            }
            encoder.element("encoder").sink.onBuffer { buffer in
                after.append(buffer.memoryIdentity)
                return .pass
            }
            try await pipeline.start()
            await eventually("frames at the encoder") { after.count >= 20 }
            await pipeline.stop()
            let seen = before.all
            #expect(after.all.allSatisfy { $0.map(seen.contains) == true })
            // Pools reuse memory, so the order shows that it is the same frame, if none was dropped.
            if pipeline.statistics.encoders["encoder"]?.droppedBeforeEncoder == 0 {
                #expect(after.all == Array(seen.prefix(after.count)))
            }
        }

        private static var sending: NodeBindings {
            var bindings = NodeBindings()
            bindings.rtpOutputs["sent"] = { _ in }
            return bindings
        }

        @Test("A pipe in place of a file is refused immediately")
        func pipe() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/pipe"
            #expect(mkfifo(path, 0o600) == 0)
            let error = await #expect(throws: MediaError.self) {
                try await MediaPipeline(
                    MediaGraph {
                        Chain {
                            Node.file(path: path)
                            Node.null()
                        }
                    })
            }
            #expect(error?.code == "file.unreadable")
            #expect(error?.message.contains("it is not a file") == true)
        }

        @Test("A start whose file or device never opens fails with its name, and so does a stop meanwhile")
        func stuck() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/clip.mp4"
            symlink(Checkout.clip, path)
            weak let remains = try await expectStuck(path)
            // The driver returns at last, for each attempt to open it, and the rest of the pipeline ends.
            await eventually("the pipeline is gone") {
                close(open(folder.path + "/clip.mp4", O_RDWR | O_NONBLOCK))
                return remains == nil
            }
            _ = consume folder
        }

        @Test("An edit whose file or device never opens returns in time, and so do the next edit and a stop")
        func stuckEdit() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/pipe"
            #expect(mkfifo(path, 0o600) == 0)
            weak let remains = try await expectStuckEdit(path)
            await eventually("the pipeline is gone") {
                close(open(folder.path + "/pipe", O_RDWR | O_NONBLOCK))
                return remains == nil
            }
            _ = consume folder
        }

        @Test("A stop beside a hanging device returns in time, names it, and ends everything else")
        func stuckStop() async throws {
            let folder = TemporaryFolder()
            let path = folder.path + "/pipe"
            #expect(mkfifo(path, 0o600) == 0)
            let device = open(path, O_RDWR)
            // One block, and then nothing.
            #expect(write(device, [UInt8](repeating: 0, count: 4096), 4096) == 4096)
            weak let remains = try await expectStuckStop(path)
            #expect(remains != nil)
            // It returns at last, and the rest of the pipeline ends.
            close(device)
            await eventually("the pipeline is gone") { remains == nil }
            _ = consume folder
        }

        private func expectStuckStop(_ path: String) async throws -> MediaPipeline {
            let (frames, warnings) = (Collected<MediaTime>(), Collected<String>())
            var bindings = NodeBindings()
            bindings.frames["pictures"] = { frames.append($0.captureTime) }
            bindings.events = { if case .warning(_, let message) = $0 { warnings.append(message) } }
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.element("filesrc", name: "stuck", ["location": .text(path)])
                        Node.element("fakesink", name: "nowhere")
                    }
                    Chain {
                        Node.testPattern("pattern", width: 160, height: 120)
                        Node.frames("pictures")
                    }
                }, bindings: bindings, limits: Limits(stop: 1))
            try await pipeline.start()
            await eventually("pictures") { frames.count > 3 }
            let begin = ContinuousClock.now
            await pipeline.stop()
            #expect(ContinuousClock.now - begin < .seconds(9))
            #expect(pipeline.state == .stopped)
            let last = frames.count
            let words = "\"stuck\" could not be closed within 1 s"
            #expect(warnings.all.contains { $0.hasPrefix(words) }, "\(warnings.all)")
            #expect(frames.count == last)
            return pipeline
        }

        /// Applies graphs to a running pattern. The first graph reads a pipe without a writer.
        private func expectStuckEdit(_ path: String) async throws -> MediaPipeline {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 160, height: 120)
                    Node.null("end")
                }
            }
            let pipeline = try await MediaPipeline(graph, limits: Limits(undo: 0.3, cancel: 0.3))
            try await pipeline.start()
            func frames() -> Int { pipeline.statistics.videoRenderers["end"]?.framesRendered ?? 0 }
            let stuck = graph.adding {
                Chain {
                    Node.element("filesrc", name: "stuck", ["location": .text(path)])
                    Node.element("fakesink", name: "nowhere")
                }
            }
            let more = graph.adding { Chain(from: "pattern") { Node.null("other") } }
            let edits = [(stuck, "\"stuck\" could not be opened in time"), (more, "still opening \"stuck\"")]
            for (next, words) in edits {
                let begin = ContinuousClock.now
                let error = await #expect(throws: MediaError.self) { try await pipeline.apply(next, within: 1) }
                #expect(ContinuousClock.now - begin < .seconds(8))
                #expect(error?.code == "graph.edit-failed")
                #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
            }
            let before = frames()
            await eventually("the unchanged graph continues") { frames() > before + 10 }
            let begin = ContinuousClock.now
            await pipeline.stop()
            #expect(ContinuousClock.now - begin < .seconds(8))
            let last = frames()
            #expect(pipeline.state == .stopped)
            #expect(frames() == last)
            return pipeline
        }

        /// Starts a file that becomes a pipe without a writer, and stops meanwhile. Returns the pipeline.
        private func expectStuck(_ path: String) async throws -> MediaPipeline {
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.file("stuck", path: path)
                        Node.null()
                    }
                    Chain {
                        Node.testPattern("pattern")
                        Node.null("other")
                    }
                }, limits: Limits(start: 1))
            unlink(path)
            #expect(mkfifo(path, 0o600) == 0)
            let begin = ContinuousClock.now
            let starting = Task { try await pipeline.start() }
            await eventually("it waits for the file") { pipeline.graph.nodeOpening?.name == "stuck" }
            await pipeline.stop()
            let error = await #expect(throws: MediaError.self) { try await starting.value }
            #expect(ContinuousClock.now - begin < .seconds(7))
            #expect(error?.code == "pipeline.stalled")
            #expect(error?.message.hasPrefix("\"stuck\" could not be opened within 1 s") == true)
            #expect(pipeline.state == .stopped)
            return pipeline
        }
    }
}

extension PassingBuffer {
    /// The address of the buffer's memory.
    fileprivate var memoryIdentity: UInt? {
        read { bytes in bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }
    }
}

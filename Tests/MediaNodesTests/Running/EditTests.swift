import GStreamerKit
import Glibc
import MediaGraph
import Synchronization
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

/// Frame numbers that reached one renderer, and the pipeline's events.
private final class Viewer: Sendable {
    let numbers = Collected<UInt32>()
    let sizes = Collected<Int>()

    var take: @Sendable (VideoFrame) -> Void {
        { [numbers, sizes] frame in
            if let number = frame.barCode { numbers.append(number) }
            sizes.append(frame.width)
        }
    }

    /// Whether every frame from the first to the last arrived, once and in order.
    var isUnbroken: Bool { missing == 0 }

    /// The number of missing frames between the first and the last. Nil without frames, or if some arrived twice or
    /// late.
    var missing: Int? { missing(from: 0) }

    /// The same, beginning after this many frames.
    func missing(from start: Int) -> Int? {
        let all = numbers.all.dropFirst(start)
        guard let first = all.first, let last = all.last, zip(all, all.dropFirst()).allSatisfy(<) else { return nil }
        return Int(last - first) + 1 - all.count
    }
}

extension MediaNodesTests {
    @Suite struct EditTests {
        private static func bindings(_ viewers: [String: Viewer], _ events: Collected<MediaEvent>) -> NodeBindings {
            var bindings = NodeBindings()
            bindings.frames = viewers.mapValues(\.take)
            bindings.events = { events.append($0) }
            return bindings
        }

        /// How many branches the output of the pattern has.
        private static func branches(_ pipeline: MediaPipeline) -> Int? {
            pipeline.graph.node("pattern")?.tee(behind: "video").integer("num-src-pads")
        }

        /// A pattern with one viewer. The functions of other viewers are bound and wait for their nodes.
        private static let watching = MediaGraph {
            Chain {
                Node.testPattern("pattern", width: 320, height: 240, framesPerSecond: 60)
                Node.frames("first")
            }
        }

        @Test("A branch delivers while it exists, and the other branch loses no frame")
        func addAndRemove() async throws {
            let (first, second, events) = (Viewer(), Viewer(), Collected<MediaEvent>())
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                Self.watching, bindings: Self.bindings(["first": first], events), on: clock)
            clock.run(pipeline, emptying: pipeline.watch())
            try await pipeline.start()
            await eventually("the first frames") { first.numbers.count > 10 }
            let both = Self.watching.adding {
                Chain(from: "pattern") { Node.frames("second") }
            }
            let change = try await pipeline.apply(both, bindings: Self.bindings(["second": second], events))
            #expect(change.description == "adds second")
            let start = second.numbers.count
            #expect(start >= 1)
            await eventually("frames on both") { second.numbers.count > start + 20 }
            // A new branch has a queue, which is watched from the end of the edit on.
            #expect(second.missing(from: start) == 0)
            #expect(try await pipeline.apply(Self.watching).description == "removes second")
            let seen = second.numbers.count
            let before = first.numbers.count
            await eventually("the first goes on") { first.numbers.count > before + 20 }
            #expect(second.numbers.count == seen)
            #expect(Self.branches(pipeline) == 1)
            await pipeline.stop()
            // The node that was alone has a queue since the edit, which is watched too.
            #expect(first.isUnbroken)
            #expect(second.missing != nil)
        }

        @Test("A source is replaced under its consumer, without affecting another branch of the old source")
        func replaceSource() async throws {
            let (first, second, events) = (Viewer(), Viewer(), Collected<MediaEvent>())
            let clock = SteppedClock()
            let both = Self.watching.adding { Chain(from: "pattern") { Node.frames("second") } }
            let pipeline = try await MediaPipeline(
                both, bindings: Self.bindings(["first": first, "second": second], events), on: clock)
            clock.run(pipeline, emptying: pipeline.watch())
            try await pipeline.start()
            await eventually("the first frames") { first.numbers.count > 10 }
            let other = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 320, height: 240, framesPerSecond: 60)
                    Node.frames("second")
                }
                Chain {
                    Node.testPattern("other", width: 640, height: 360, framesPerSecond: 30)
                    Node.frames("first")
                }
            }
            #expect(try await pipeline.apply(other).description == "adds other")
            let before = (first: first.numbers.count, second: second.numbers.count)
            await eventually("frames of both sources") {
                first.numbers.count > before.first + 20 && second.numbers.count > before.second + 20
            }
            await pipeline.stop()
            // No frame of the old size arrives after one of the new.
            let sizes = first.sizes.all
            #expect(sizes.sorted() == sizes && sizes.last == 640)
            let old = first.numbers.all.prefix(sizes.count { $0 == 320 })
            #expect(old.elementsEqual(0..<UInt32(old.count)))
            #expect(first.missing(from: old.count) == 0)
            #expect(second.isUnbroken && second.numbers.all.first == 0)
            #expect(second.sizes.all.allSatisfy { $0 == 320 })
        }

        @Test("A source that also feeds an input that its old source blocks keeps feeding its other branches")
        func heldSource() async throws {
            let (first, second, events) = (Viewer(), Viewer(), Collected<MediaEvent>())
            let (gate, isStuck) = (Gate(), AtomicBool())
            var bindings = Self.bindings(["first": first], events)
            bindings.frames["second"] = { frame in
                if second.numbers.count == 5 {
                    isStuck.raise()
                    gate.wait()
                }
                second.take(frame)
            }
            func graph(feedingSecond source: String) -> MediaGraph {
                Self.watching.adding {
                    Chain {
                        Node.testPattern("other", width: 160, height: 120, framesPerSecond: 30)
                        Node.null("rest")
                    }
                    Chain(from: source) { Node.frames("second") }
                }
            }
            let pipeline = try await MediaPipeline(graph(feedingSecond: "other"), bindings: bindings)
            try await pipeline.start()
            await eventually("the second is stuck") { isStuck.value }
            let isDone = AtomicBool()
            async let change = {
                let change = try await pipeline.apply(graph(feedingSecond: "pattern"))
                isDone.raise()
                return change
            }()
            let before = first.numbers.count
            await eventually("the first goes on") { first.numbers.count > before + 60 }
            #expect(!isDone.value)
            gate.open()
            #expect(try await change.description == "changes links")
            await eventually("the second goes on with the other's frames") { second.sizes.all.last == 320 }
            await pipeline.stop()
        }

        @Test("An input that its old source blocked accepts frames of its new source")
        func refusingInput() async throws {
            let (first, second, events) = (Viewer(), Viewer(), Collected<MediaEvent>())
            let (gate, isStuck) = (Gate(), AtomicBool())
            var bindings = Self.bindings(["first": first], events)
            bindings.frames["second"] = { frame in
                if second.numbers.count == 5 {
                    isStuck.raise()
                    gate.wait()
                }
                second.take(frame)
            }
            let before = Self.watching.adding {
                Chain {
                    Node.testPattern("other", width: 160, height: 120, framesPerSecond: 30)
                    Node.frames("second")
                }
            }
            let pipeline = try await MediaPipeline(before, bindings: bindings)
            try await pipeline.start()
            await eventually("the second is stuck") { isStuck.value }
            async let change = pipeline.apply(
                Self.watching.adding { Chain(from: "pattern") { Node.frames("second") } })
            let start = first.numbers.count
            // 1.5 s: by then the edit has freed the input by force.
            await eventually("the first goes on") { first.numbers.count > start + 90 }
            gate.open()
            #expect(try await change.description == "removes other")
            await eventually("the second goes on with the other's frames") { second.sizes.all.last == 320 }
            await pipeline.stop()
        }

        @Test("A source that waits in an edit for another source's keyframe keeps feeding its other branches")
        func waitingSource() async throws {
            let pictures = try await EncodedPictures.make("vp8", count: 2)
            try #require(pictures.count == 2)
            let (stays, one, events) = (Collected<Bool>(), Collected<Bool>(), Collected<MediaEvent>())
            var bindings = Self.bindings([:], events)
            for name in ["second", "two", "rest"] { bindings.rtpOutputs[name] = { _ in } }
            bindings.rtpOutputs["stays"] = { stays.append($0.isKeyframe) }
            bindings.rtpOutputs["one"] = { one.append($0.isKeyframe) }
            func graph(_ first: String, _ second: String) -> MediaGraph {
                MediaGraph {
                    for (source, output) in [("a", "stays"), ("b", "second"), ("c", "rest")] {
                        Chain {
                            Node.bypass(source, width: 320, height: 240, codec: .vp8)
                            Node.rtpOutput(output)
                        }
                    }
                    Chain(from: first) { Node.rtpOutput("one") }
                    Chain(from: second) { Node.rtpOutput("two") }
                }
            }
            let pipeline = try await MediaPipeline(graph("c", "c"), bindings: bindings)
            try await pipeline.start()
            func push(_ picture: Int, into node: String) {
                _ = pipeline.frameInput(node)?.push(encoded: pictures[picture], at: .now)
            }
            for node in ["a", "b", "c"] { push(0, into: node) }
            await eventually("the first frames") { stays.count == 1 && one.count == 1 }
            func wishes(_ node: String) -> Int {
                events.all.count { if case .keyframeNeeded(node) = $0 { true } else { false } }
            }
            let before = (a: wishes("a"), b: wishes("b"))
            async let change = pipeline.apply(graph("a", "b"), within: 20)
            await eventually("the edit asks the first source for a keyframe") {
                for node in ["a", "b"] { push(1, into: node) }
                return wishes("a") > before.a
            }
            push(0, into: "a")
            await eventually("the edit asks the second source for a keyframe") { wishes("b") > before.b }
            let start = stays.count
            await eventually("the first source's other branch goes on") {
                push(1, into: "a")
                return stays.count > start + 20
            }
            let taken = one.count
            push(0, into: "b")
            #expect(try await change.description == "changes links")
            await eventually("the first source's new branch begins with its keyframe") { one.count > taken }
            #expect(one.all[taken])
            await pipeline.stop()
        }

        @Test("A recording of encoded media that joins begins with a keyframe")
        func encodedBranch() async throws {
            let first = Viewer()
            let batches = Collected<Bool>()
            var bindings = NodeBindings()
            bindings.frames = ["first": first.take]
            bindings.rtpOutputs["sent"] = { _ in }
            var more = NodeBindings()
            more.rtpOutputs["more"] = { batches.append($0.isKeyframe) }
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 320, height: 240, framesPerSecond: 60)
                    Tee { Node.frames("first") }
                    Node.videoEncoder("encoder", codec: .vp8)
                    Node.rtpOutput("sent")
                }
            }
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(graph, bindings: bindings, on: clock)
            clock.run(pipeline, emptying: pipeline.watch())
            try await pipeline.start()
            await eventually("the first frames") { first.numbers.count > 20 }
            try await pipeline.apply(
                graph.adding { Chain(from: "encoder") { Node.rtpOutput("more") } }, bindings: more)
            await eventually("more frames") { batches.count > 5 }
            #expect(batches.all.first == true)
            let encoded = pipeline.statistics.encoders["encoder"]
            #expect(encoded?.keyframes == 2)
            let before = first.numbers.count
            await eventually("the first goes on") { first.numbers.count > before + 20 }
            #expect(first.isUnbroken)
            await pipeline.stop()
        }

        @Test("A new node that delivers nothing in time is removed, reported, and nothing else changes")
        func deadline() async throws {
            let (first, second, events) = (Viewer(), Viewer(), Collected<MediaEvent>())
            let pipeline = try await MediaPipeline(
                Self.watching, bindings: Self.bindings(["first": first], events))
            try await pipeline.start()
            await eventually("the first frames") { first.numbers.count > 10 }
            let plan = pipeline.plan
            // Packets that are never pushed never become a frame.
            let silent = Self.watching.adding {
                Chain(from: "pattern") {
                    Node.scale("beside", width: 160, height: 120)
                    Node.null("end")
                }
                Chain {
                    Node.rtpInput("nobody", codec: VideoCodec.vp8)
                    Node.videoDecoder()
                    Node.frames("second")
                }
            }
            let error = await #expect(throws: MediaError.self) {
                try await pipeline.apply(
                    silent, bindings: Self.bindings(["second": second], events), within: 2)
            }
            #expect(error?.code == "graph.edit-failed" && error?.node == "nobody")
            #expect(error?.message.hasPrefix("\"nobody\" delivered nothing in time") == true, "\(error?.message ?? "")")
            #expect(pipeline.plan == plan)
            let before = first.numbers.count
            await eventually("the first goes on") { first.numbers.count > before + 20 }
            #expect(try await pipeline.apply(Self.watching).isEmpty)
            await pipeline.stop()
            #expect(first.isUnbroken)
            #expect(!events.all.contains { if case .failed = $0 { true } else { false } })
        }

        @Test("A new branch that fails is removed with its own error, and the others lose no frame")
        func failing() async throws {
            let (first, events) = (Viewer(), Collected<MediaEvent>())
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                Self.watching, bindings: Self.bindings(["first": first], events), on: clock)
            clock.run(pipeline)
            try await pipeline.start()
            await eventually("the first frames") { first.numbers.count > 10 }
            let plan = pipeline.plan
            func apply(_ branch: Chain) async -> MediaError? {
                await #expect(throws: MediaError.self) {
                    try await pipeline.apply(
                        Self.watching.adding { branch }, bindings: Self.bindings(["second": Viewer()], events))
                }
            }
            let absent = await apply(
                Chain {
                    Node.file("gone", path: "/nowhere.mp4")
                    Node.frames("second")
                })
            #expect(absent?.code == "file.not-found")
            // Fails only when it runs.
            let late = await apply(
                Chain(from: "pattern") {
                    Node("element:identity", name: "broken", settings: ["error-after": 1])
                    Node.frames("second")
                })
            #expect(late?.code == MediaError.Code.elementFailed && late?.node == "broken", "\(late as Any)")
            #expect(pipeline.plan == plan)
            #expect(Self.branches(pipeline) == 1)
            let before = first.numbers.count
            await eventually("the first goes on") { first.numbers.count > before + 20 }
            #expect(!events.all.contains { if case .failed = $0 { true } else { false } })
            await pipeline.stop()
            #expect(first.isUnbroken)
        }

        @Test("A live setting changes in place; a fixed one is refused with the live settings")
        func settings() async throws {
            var bindings = NodeBindings()
            bindings.rtpOutputs["sent"] = { _ in }
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 320, height: 240)
                    Node.videoEncoder("encoder", codec: .vp8)
                    Node.rtpOutput("sent")
                }
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            try await pipeline.start()
            try await pipeline.set("encoder", "bitrate", to: 123_000)
            #expect(pipeline.statistics.encoders["encoder"]?.targetBitsPerSecond == 123_000)
            #expect(pipeline.plan.node("encoder")?.node.settings["bitrate"] == 123_000)
            let fixed = await #expect(throws: MediaError.self) {
                try await pipeline.set("encoder", "keyframe-interval", to: 30)
            }
            #expect(fixed?.code == "graph.setting-fixed")
            #expect(fixed?.message.contains("the live settings are bitrate") == true)
            let wrong = await #expect(throws: MediaError.self) {
                try await pipeline.set("encoder", "bitrate", to: "fast")
            }
            #expect(wrong?.code == "graph.invalid")
            await pipeline.stop()
        }

        @Test("set changes the running encoder and its plan")
        func bitrate() async throws {
            var bindings = NodeBindings()
            bindings.rtpOutputs["sent"] = { _ in }
            bindings.rtpOutputs["heard"] = { _ in }
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("pattern", width: 320, height: 240)
                    Node.videoEncoder("encoder", codec: .vp8, bitrate: .kilobitsPerSecond(800))
                    Node.rtpOutput("sent")
                }
                Chain(from: "pattern", port: "audio") {
                    Node.opusEncoder("voice")
                    Node.rtpOutput("heard")
                }
            }
            let pipeline = try await MediaPipeline(graph, bindings: bindings)
            let voice = pipeline.plan.links(into: "heard")
            try await pipeline.start()
            try await pipeline.set("encoder", "bitrate", to: 500_000)
            try await pipeline.set("voice", "bitrate", to: 32_000)
            let plan = pipeline.plan
            #expect(plan.source.node("encoder")?.settings["bitrate"] == 500_000)
            #expect(plan.node("encoder")?.formats["out"]?.bitsPerSecond == 500_000)
            #expect(plan.links(into: "sent").first?.format.bitsPerSecond == 500_000)
            #expect(plan.node("voice")?.element("encoder")?.properties["bitrate"] == 32_000)
            #expect(plan.links(into: "heard").first?.format.bitsPerSecond == 32_000)
            // The same graph changes nothing; the one that was started sets the bitrates back.
            #expect(try await pipeline.apply(plan.source).isEmpty)
            #expect(try await pipeline.apply(graph).description == "sets encoder.bitrate, voice.bitrate")
            #expect(pipeline.statistics.encoders["encoder"]?.targetBitsPerSecond == 800_000)
            #expect(pipeline.plan.links(into: "sent").first?.format.bitsPerSecond == 800_000)
            #expect(pipeline.plan.links(into: "heard") == voice)
            // Without its bitrate in the graph, an encoder chooses again.
            var free = graph
            for index in free.nodes.indices { free.nodes[index].settings["bitrate"] = nil }
            #expect(try await pipeline.apply(free).description == "sets encoder.bitrate")
            let usual = try Planner(NodeRegistry.builtIn, SystemEnvironment()).plan(free).links(into: "sent")
            #expect(pipeline.plan.links(into: "sent") == usual)
            #expect(usual.first?.format.bitsPerSecond != 800_000)
            await eventually("the encoder's own bitrate") {
                pipeline.statistics.encoders["encoder"]?.targetBitsPerSecond == usual.first?.format.bitsPerSecond
            }
            await pipeline.stop()
        }

        @Test("Bitrates and keyframes are refused for missing nodes and for nodes that are not encoders")
        func unknownEncoder() async throws {
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240)
                        Node.videoEncoder("encoder")
                        Node.null("end")
                    }
                })
            func refusal(_ body: () async throws(MediaError) -> Void) async -> String? {
                do throws(MediaError) {
                    try await body()
                    return nil
                } catch {
                    return error.code == "graph.invalid" ? error.message : error.code
                }
            }
            for name in ["encodr", "pattern"] {
                let bitrate = await refusal { () throws(MediaError) in
                    try await pipeline.set(name, "bitrate", to: 100_000)
                }
                let keyframe = await refusal { () throws(MediaError) in try pipeline.requestKeyframe(name) }
                let hint = name == "encodr" ? "did you mean \"encoder\"?" : "pattern"
                #expect(bitrate?.contains(hint) == true && keyframe?.contains(hint) == true)
            }
            try pipeline.requestKeyframe("encoder")
            await pipeline.stop()
        }

        @Test("An optional part that fails is removed, and the rest loses no frame")
        func optionalPart() async throws {
            let (first, events) = (Viewer(), Collected<MediaEvent>())
            let folder = TemporaryFolder()
            let images = folder.path + "/images"
            try #require(mkdir(images, 0o700) == 0)
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240, framesPerSecond: 60)
                        Tee("picture", isOptional: true) {
                            Node.snapshot(path: images + "/picture.png", frame: 30)
                        }
                        Node.frames("first")
                    }
                }, bindings: Self.bindings(["first": first], events), on: clock)
            clock.run(pipeline, emptying: pipeline.watch())
            let part = try #require(pipeline.graph.node("snapshot"))
            rmdir(images)
            try await pipeline.start()
            await eventually("the part is taken out") {
                events.all.contains { if case .partFailed = $0 { true } else { false } }
            }
            #expect(pipeline.plan.nodes.map(\.name) == ["pattern", "first"])
            // An unplugged device is reported twice: by its driver, and by the watchdog of its frames.
            part.reporter.fail(MediaError(code: "file.unwritable", message: "It still cannot be written."), "snapshot")
            let before = first.numbers.count
            await eventually("the first goes on") { first.numbers.count > before + 30 }
            #expect(pipeline.state == .running)
            #expect(first.isUnbroken)
            await pipeline.stop()
        }

        @Test("An error downstream of an optional branch with buffer lists stops no other branch")
        func optionalBranchOfLists() async throws {
            let events = Collected<MediaEvent>()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 640, height: 480, framesPerSecond: 60)
                        Node.videoEncoder("encoder", codec: .vp8)
                        // Delivers the packets of a frame as one list.
                        Node("element:rtpvp8pay", name: "packets", settings: ["mtu": 300])
                        Tee("disk", isOptional: true) {
                            Node(
                                "element:filesink", name: "disk",
                                settings: ["location": "/dev/full", "buffer-mode": "unbuffered"])
                        }
                        Node("element:fakesink", name: "rest")
                    }
                }, bindings: Self.bindings([:], events))
            let watch = pipeline.watch()
            func passed() -> Int { watch.sample().first { $0.node == "rest" }?.framesIn ?? 0 }
            try await pipeline.start()
            await eventually("the part is taken out") {
                events.all.contains { if case .partFailed(_, ["disk"]) = $0 { true } else { false } }
            }
            let before = passed()
            await eventually("the rest goes on") { passed() > before + 30 }
            #expect(pipeline.state == .running)
            await pipeline.stop()
        }

        @Test("An optional branch that ends its stream stops no other branch, and is removed with a report")
        func optionalBranchThatEnds() async throws {
            let (first, events) = (Viewer(), Collected<MediaEvent>())
            let clock = SteppedClock()
            let pipeline = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("pattern", width: 320, height: 240, framesPerSecond: 60)
                        Tee("short", isOptional: true) {
                            Node("element:identity", name: "short", settings: ["eos-after": 10])
                            Node.null("end")
                        }
                        Node.frames("first")
                    }
                }, bindings: Self.bindings(["first": first], events), on: clock)
            clock.run(pipeline, emptying: pipeline.watch())
            try await pipeline.start()
            await eventually("the part is taken out") {
                events.all.contains { if case .partFailed(_, ["end", "short"]) = $0 { true } else { false } }
            }
            let before = first.numbers.count
            await eventually("the first goes on") { first.numbers.count > before + 30 }
            #expect(pipeline.state == .running)
            #expect(first.isUnbroken)
            await pipeline.stop()
        }

        /// An object that a bound function holds.
        private final class Held: Sendable {}

        /// A function for the node, and the object that it holds while it is bound.
        private static func holding(_ node: String) -> (NodeBindings, () -> Held?) {
            let held = Held()
            var bindings = NodeBindings()
            bindings.frames[node] = { _ in withExtendedLifetime(held) {} }
            return (bindings, { [weak held] in held })
        }

        @Test("Bindings of a branch are released with it, and those for a later graph are kept")
        func boundCode() async throws {
            let (first, events) = (Viewer(), Collected<MediaEvent>())
            var bindings = Self.holding("later").0
            bindings.frames["first"] = first.take
            bindings.events = { events.append($0) }
            let plan = try Planner(NodeRegistry.builtIn, SystemEnvironment()).plan(
                Self.watching, bound: [.frames: ["first"]])
            let pipeline = try await MediaPipeline(plan, bindings: bindings)
            try await pipeline.start()
            let second = Self.watching.adding { Chain(from: "pattern") { Node.frames("second") } }
            let third = Self.watching.adding { Chain(from: "pattern") { Node.frames("third") } }
            func apply(_ graph: MediaGraph, bringing node: String) async throws -> () -> Held? {
                let (bindings, held) = Self.holding(node)
                try await pipeline.apply(graph, bindings: bindings, within: 10)
                return held
            }
            let held = try await apply(second, bringing: "second")
            #expect(held() != nil)
            let never = try await apply(second, bringing: "nobody")
            await eventually("a function without a node is gone") { never() == nil }
            try await pipeline.apply(Self.watching)
            await eventually("the removed branch's function is gone") { held() == nil }
            // A failed edit leaves nothing behind either.
            let refused = Self.holding("third")
            await #expect(throws: MediaError.self) {
                try await pipeline.apply(third.adding { Chain { Node("frames", name: "alone") } }, bindings: refused.0)
            }
            #expect(pipeline.plan.nodes.map(\.name) == ["pattern", "first"])
            let before = first.numbers.count
            await eventually("the first goes on") { first.numbers.count > before }
            let last = Self.watching.adding { Chain(from: "pattern") { Node.frames("later") } }
            try await pipeline.apply(last, within: 10)
            #expect(pipeline.plan.node("later") != nil)
            await pipeline.stop()
        }
    }
}

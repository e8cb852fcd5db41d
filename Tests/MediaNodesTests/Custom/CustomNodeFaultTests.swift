import Glibc
import MediaGraph
import MediaNodes
import Synchronization
import Testing
import TestSupport

private let refusals = Collected<String>()

private struct Changing: Capturer {
    enum Way: String, SettingChoice { case size, pixels }
    static let summary = "Changes its format after ten frames"
    @Setting("What changes") var way: Way

    func format() -> PictureFormat { PictureFormat(width: 320, height: 180, framesPerSecond: 30) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        var number: UInt32 = 0
        while true {
            if number == 10 {
                do {
                    try output.change(
                        to: way == .size
                            ? PictureFormat(width: 640, height: 360, framesPerSecond: 30)
                            : PictureFormat(.bgrx, width: 320, height: 180, framesPerSecond: 30))
                } catch let error as MediaError {
                    refusals.append(error.code)
                }
            }
            try await output.draw { picture in
                picture.fill(luma: 100)
                picture.draw(barCode: number)
            }
            number += 1
        }
    }
}

private struct Stamped: Capturer {
    enum Clock: String, SettingChoice { case wall, far, right }
    static let summary = "Stamps its frames"
    @Setting("By which clock") var clock: Clock

    func format() -> PictureFormat { PictureFormat(width: 64, height: 48, framesPerSecond: 30) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true {
            var time = output.now
            switch clock {
            case .wall:
                var wall = timespec()
                clock_gettime(CLOCK_REALTIME, &wall)
                time.nanoseconds = UInt64(wall.tv_sec) * 1_000_000_000
            // Beyond the range of a signed number.
            case .far: time.nanoseconds = UInt64(Int.max) + 1_000_000_000_000_000
            case .right: break
            }
            try output.send(at: time) { $0.fill(luma: 100) }
            try await Task.sleep(for: .milliseconds(30))
        }
    }
}

private let alive = Atomic(0)
private let renderings = Atomic(0)

private final class Counted: Sendable {
    init() { alive.add(1, ordering: .relaxed) }
    deinit { alive.subtract(1, ordering: .relaxed) }
}

private struct Held: Capturer {
    static let summary = "Counts how many of it there are"
    private let counted = Counted()

    init() {}

    func format() -> PictureFormat { PictureFormat(width: 64, height: 48, framesPerSecond: 30) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        while true { try await output.draw { $0.fill(luma: 100) } }
    }
}

private struct HeldEnd: Renderer {
    static let summary = "Counts how many of it there are"
    private let counted = Counted()

    init() {}

    func render(_ media: RenderStream<VideoFrame>) async throws {
        renderings.add(1, ordering: .relaxed)
        for await _ in media {}
    }
}

private func around(
    _ pattern: ElementsNode.Element = ElementsNode.Element("videotestsrc"),
    links: [(from: String, to: String)]? = nil, takes: MediaFormat? = nil, gives: MediaFormat = .rawVideo()
) -> ElementsNode {
    ElementsNode(
        "around", "A pattern", elements: [pattern, ElementsNode.Element("videoconvert")], links: links,
        takes: takes, gives: gives)
}

/// Nodes around elements, and words of the message that refuses them.
private let misshapen: [(ElementsNode, String)] = [
    (around(links: [("", "videoconvert")]), "links \"\""),
    (around(links: [("videotestsrc", ".")]), "links \".\""),
    (around(links: [("videotestsrc", "videoconvert.")]), "links \"videoconvert.\""),
    (around(links: [("videotestsrc", "videoconvrt")]), "did you mean videoconvert?"),
    (around(ElementsNode.Element("videotestsrc", as: "")), "an element named \"\""),
    (around(ElementsNode.Element("videotestsrc", as: "a.b")), "an element named \"a.b\""),
    (around(ElementsNode.Element("videotestsrc", as: "tee-video")), "are reserved"),
    (around(ElementsNode.Element("videotestsrc", ["no-such": 1])), "has no property no-such"),
    (around(ElementsNode.Element("videotestsrc", ["patern": "ball"])), "did you mean pattern?"),
    (around(ElementsNode.Element("videotestsrc", ["pattern": "no-such"])), "it must be one of smpte"),
    (around(ElementsNode.Element("videotestsrc", ["num-buffers": -5])), "cannot be -5"),
    (around(ElementsNode.Element("videotestsrc", ["name": "mine"])), "name it with \"as\""),
    (around(links: [("videotestsrc.no_pad", "videoconvert")]), "videotestsrc.no_pad"),
    (around(links: [("videotestsrc.scr", "videoconvert.sink")]), "did you mean src?"),
    (around(links: [("videotestsrc.src", "videoconvert.src")]), "an input videoconvert.src"),
    (around(takes: .rawVideo()), "an input videotestsrc.sink"),
    (around(gives: .rawVideo("I420,,")), "gives I420,,"),
    (around(gives: .rawVideo(width: -1)), "which is not a valid format"),
    (around(gives: .rawVideo(framesPerSecond: .infinity)), "which is not a valid format"),
]

/// Changes of format, and downstream nodes that do not accept them.
private let unwelcome: [(String, [Node])] = [
    ("pixels", []), ("pixels", [Node.videoEncoder("vp8", codec: .vp8)]),
    (
        "size",
        [
            Node(
                "element:capsfilter", name: "fixed",
                settings: ["caps": "video/x-raw,format=I420,width=320,height=180"])
        ]
    ),
]

extension MediaNodesTests {
    /// Mistakes of authors in their own nodes.
    @Suite struct CustomNodeFaultTests {
        private let registry: NodeRegistry

        init() throws {
            registry = try NodeRegistry.builtIn.adding(
                .capturer(Changing.init), .capturer(Stamped.init), .capturer(Held.init), .renderer(HeldEnd.init))
        }

        // MARK: Nodes around elements

        @Test(
            "A node around elements is refused with a message when it is added",
            arguments: misshapen)
        func elements(_ node: ElementsNode, _ words: String) {
            let error = #expect(throws: MediaError.self) { _ = try NodeRegistry.builtIn.adding(.elements(node)) }
            #expect(error?.code == "graph.invalid")
            #expect(error?.message.contains(words) == true, "\(error?.message ?? "nothing")")
        }

        @Test("Requested pads, and words given as numbers, work")
        func namedPads() async throws {
            let node = ElementsNode(
                "mixed", "Two patterns in one frame",
                elements: [
                    ElementsNode.Element("videotestsrc", as: "ball", ["is-live": true, "pattern": 18]),
                    ElementsNode.Element("videotestsrc", as: "snow", ["is-live": true, "pattern": "snow"]),
                    ElementsNode.Element("compositor", as: "mixer"),
                ],
                links: [("ball", "mixer.sink_0"), ("snow.src", "mixer.sink_%u")],
                gives: .rawVideo(width: 320, height: 180, framesPerSecond: 30))
            let seen = Seen()
            let graph = chain(Node("mixed"), .frames("view"))
            let pipeline = try await MediaPipeline(
                graph, bindings: seen.bindings(of: graph), registry: try NodeRegistry.builtIn.adding(.elements(node)))
            try await pipeline.start()
            await eventually("pictures") { seen.pictures.count > 3 }
            await pipeline.stop()
        }

        @Test("A setting that the wrapped element cannot read is refused with a message")
        func exposed() async throws {
            let node = ElementsNode(
                "filtered", "A pattern of a format",
                elements: [ElementsNode.Element("videotestsrc"), ElementsNode.Element("capsfilter")],
                exposing: ["format": "capsfilter.caps"], gives: .rawVideo())
            let registry = try NodeRegistry.builtIn.adding(.elements(node))
            let error = await #expect(throws: MediaError.self) {
                _ = try await MediaPipeline(
                    chain(Node("filtered", settings: ["format": "no, format=="]), .null("end")), registry: registry)
            }
            #expect(error?.code == "graph.invalid")
            #expect(error?.message.contains("capsfilter.caps cannot be") == true, "\(error?.message ?? "nothing")")
        }

        // MARK: Formats

        private func changing(_ way: String, _ nodes: [Node], _ seen: Seen) async throws -> MediaPipeline {
            let graph = MediaGraph {
                Chain {
                    Changing.node(["way": .text(way)])
                    for node in nodes { node }
                    Node.frames("view")
                }
            }
            return try await MediaPipeline(graph, bindings: seen.bindings(of: graph), registry: registry)
        }

        @Test("A capturer can change the size of its frames, also upstream of an encoder")
        func size() async throws {
            let before = refusals.count
            let seen = Seen()
            let pipeline = try await changing("size", [.videoEncoder("vp8", codec: .vp8)], seen)
            try await pipeline.start()
            await eventually("the new size") { seen.pictures.all.last?.width == 640 }
            await pipeline.stop()
            #expect(seen.pictures.all.first?.width == 320)
            #expect(refusals.count == before)
            #expect(seen.failures.isEmpty)
        }

        @Test(
            "A refused format change leaves the capturer running unchanged",
            arguments: unwelcome)
        func refused(_ way: String, _ nodes: [Node]) async throws {
            let before = refusals.count
            let seen = Seen()
            let pipeline = try await changing(way, nodes, seen)
            try await pipeline.start()
            await eventually("frames after the change") { (seen.pictures.all.last?.barCode ?? 0) > 20 }
            await pipeline.stop()
            #expect(refusals.all.dropFirst(before) == ["graph.format-clash"])
            #expect(seen.pictures.all.allSatisfy { $0.width == 320 && $0.barCode != nil })
            #expect(seen.failures.isEmpty)
        }

        // MARK: Times

        @Test(
            "A capture time of another clock fails the node, not the process",
            arguments: ["wall", "far"])
        func future(_ clock: String) async throws {
            let folder = TemporaryFolder()
            let seen = Seen()
            let graph = chain(
                Stamped.node(["clock": .text(clock)]), .recorder("recorder", path: "\(folder.path)/a.mkv"))
            let pipeline = try await MediaPipeline(graph, bindings: seen.bindings(of: graph), registry: registry)
            let error = await #expect(throws: MediaError.self) { try await pipeline.start() }
            #expect(error?.code == "node.time", "\(error?.description ?? "nothing")")
            #expect(error?.node == "stamped")
        }

        // MARK: Lives

        @Test("A pipeline that never starts releases its nodes without running them")
        func neverStarted() async throws {
            let graph = chain(Held.node(), HeldEnd.node())
            for _ in 0..<20 { _ = try await MediaPipeline(graph, registry: registry) }
            await eventually("all are gone") { alive.load(ordering: .relaxed) == 0 }
            #expect(renderings.load(ordering: .relaxed) == 0)
        }

        @Test("An abandoned start releases the nodes")
        func givenUp() async throws {
            for _ in 0..<3 {
                let folder = TemporaryFolder()
                let pipeline = try await MediaPipeline(
                    MediaGraph {
                        Chain {
                            Held.node()
                            Tee { HeldEnd.node() }
                            Node.recorder("recorder", path: "\(folder.path)/a.mkv")
                        }
                    }, registry: registry)
                rmdir(folder.path)
                let error = await #expect(throws: MediaError.self) { try await pipeline.start() }
                #expect(error?.code == "file.unwritable")
            }
            await eventually("all are gone") { alive.load(ordering: .relaxed) == 0 }
        }
    }
}

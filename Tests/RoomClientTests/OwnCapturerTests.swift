import Foundation
import MediaGraph
import MediaNodes
import PluginLoader
import TestFixtures
import Testing
import TestSupport

@testable import RoomClient

private struct Numbered: Capturer {
    static let summary = "Numbered grey frames"

    func format() -> PictureFormat { PictureFormat(width: 320, height: 180, framesPerSecond: 30) }

    func capture(into output: CaptureOutput<PictureFormat>) async throws {
        var number: UInt32 = 0
        while true {
            try await output.draw { picture in
                picture.fill(luma: 100)
                picture.draw(barCode: number)
            }
            number += 1
        }
    }
}

/// Draws numbers on the frames of elements, which have none.
private struct Numbering: Processor {
    static let summary = "Numbers frames"
    private var next: UInt32 = 0

    init() {}

    mutating func process(_ picture: inout MutableVideoFrame) {
        picture.draw(barCode: next)
        next += 1
    }
}

/// Custom nodes are published and rendered like built-in ones.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct OwnCapturerTests {
    private static let pattern = ElementsNode(
        "ball", "A ball that moves",
        elements: [ElementsNode.Element("videotestsrc", ["is-live": true, "pattern": "ball"])],
        gives: .rawVideo(width: 320, height: 180, framesPerSecond: 30))

    private func isPublished(_ nodes: [Node], _ registry: NodeRegistry) async throws {
        try await RoomStage.run { stage in
            func room(_ kind: String) -> Node {
                Node(kind, settings: stage.settings(room: "room").mapValues { .text($0) })
            }
            let numbers = Collected<UInt32?>()
            var bindings = NodeBindings()
            bindings.frames["view"] = { numbers.append($0.barCode) }
            let viewer = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        room("subscribe")
                        Node.videoDecoder()
                        Node.frames("view")
                    }
                }, bindings: bindings, registry: registry)
            try await viewer.start()
            let publisher = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        for node in nodes { node }
                        Node.videoEncoder("encoder", codec: .vp8)
                        room("publish")
                    }
                }, registry: registry)
            try await publisher.start()
            try await requireEventually("pictures") { numbers.all.count >= 30 }
            await publisher.stop()
            await viewer.stop()
            let read = numbers.all.compactMap(\.self)
            #expect(read.count == numbers.all.count, "every bar code is intact")
            #expect(read == read.sorted())
        }
    }

    @Test func `a program's capturer is published and rendered with its numbers intact`() async throws {
        try await isPublished([Numbered.node()], RoomNodes.registry.adding(.capturer(Numbered.init)))
    }

    @Test func `a node around elements is published and rendered through a processor of the program`() async throws {
        try await isPublished(
            [Node("ball"), Numbering.node()],
            RoomNodes.registry.adding(.elements(Self.pattern), .processor(Numbering.init)))
    }

    @Test func `a shared library's capturer is published and rendered with its numbers intact`() async throws {
        let bench = try Workbench("examples/clock-face")
        try bench.build()
        try await isPublished(
            [Node("clock-face", settings: ["height": 240])],
            RoomNodes.registry.adding(try PluginLoader.load(bench.package.path)))
    }
}

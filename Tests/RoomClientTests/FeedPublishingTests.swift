import Foundation
import MediaGraph
import MediaNodes
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import RoomClient

/// Frames of other processes, published in a room and delivered from it.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct FeedPublishingTests {
    private static let example = Checkout.path("examples/frame-socket/clock.py")

    /// A program that writes the example's frames to its standard output instead of the socket.
    private static let writer = """
        import sys
        text = open(sys.argv[1]).read()
        exec(text[:text.index("name = os.environ")])
        picture, number = bytearray(640 * 480 * 3 // 2), 0
        while True:
            draw(picture, 640, 480, number)
            sys.stdout.buffer.write(picture)
            sys.stdout.flush()
            number += 1
            time.sleep(1 / 30)
        """

    @Test(arguments: ["process", "feed", "exec"])
    func `a program's frames are published to a room and rendered with their bar codes`(kind: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("feed-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let socket = folder.appendingPathComponent("feed.sock").path
        let writer = folder.appendingPathComponent("writer.py").path
        try Self.writer.write(toFile: writer, atomically: true, encoding: .utf8)
        var settings: [String: SettingValue] = ["width": 640, "height": 480, "fps": 30]
        switch kind {
        case "process": settings["command"] = .text("python3 '\(Self.example)'")
        case "exec": settings["command"] = .text("python3 '\(writer)' '\(Self.example)'")
        default: settings["socket"] = .text(socket)
        }
        let source = Node(kind, name: "source", settings: settings)
        try await RoomStage.run { stage in
            let numbers = Mutex<[UInt32?]>([])
            var bindings = NodeBindings()
            bindings.frames["view"] = { frame in
                let number = frame.barCode
                numbers.withLock { $0.append(number) }
            }
            let place = stage.settings(room: "room").mapValues { SettingValue.text($0) }
            let viewer = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node("subscribe", settings: place)
                        Node.videoDecoder()
                        Node.frames("view")
                    }
                }, bindings: bindings, registry: RoomNodes.registry)
            try await viewer.start()
            let publisher = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        source
                        Node.videoEncoder("encoder", codec: .vp8)
                        Node("publish", settings: place)
                    }
                }, registry: RoomNodes.registry)
            try await publisher.start()
            let feeder = Process()
            if kind == "feed" {
                feeder.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
                feeder.arguments = [Self.example]
                feeder.environment = ["CONNECTLIVE_FRAME_SOCKET": socket]
                try feeder.run()
            }
            try await requireEventually("pictures") { numbers.withLock { $0.count } >= 30 }
            await publisher.stop()
            await viewer.stop()
            // The feeder got the message that the graph ends.
            if kind == "feed" { feeder.waitUntilExit() }
            let all = numbers.withLock { $0 }
            let codes = all.compactMap { $0 }
            #expect(codes.count == all.count, "every frame has its code")
            #expect(zip(codes, codes.dropFirst()).allSatisfy { $0 < $1 }, "\(codes)")
        }
    }
}

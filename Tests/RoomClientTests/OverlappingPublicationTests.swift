import Dispatch
import MediaGraph
import MediaNodes
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import RoomClient

/// Edits of a graph that publishes, which end before the room has the streams of the former publication.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct OverlappingPublicationTests {
    private let folder = TemporaryFolder()

    private struct Scene {
        let stage: RoomStage
        let relay: Relay
        let onlooker: Onlooker
    }

    private func run(_ body: (Scene) async throws -> Void) async throws {
        try await RoomStage.run { stage in
            let (relay, onlooker) = (try Relay(to: stage), Onlooker())
            let engine = try await onlooker.enter(stage)
            defer {
                engine.disconnect()
                relay.stop()
            }
            try await body(Scene(stage: stage, relay: relay, onlooker: onlooker))
        }
    }

    /// A node that publishes through the relay.
    private func publish(_ scene: Scene) -> Node {
        var settings = scene.stage.settings(room: "room")
        settings["server"] = "ws://127.0.0.1:\(scene.relay.port)"
        return Node("publish", name: "publish", settings: settings.mapValues { .text($0) })
    }

    private func withTone(_ graph: MediaGraph) -> MediaGraph {
        graph.adding {
            Chain {
                Node.testPattern("bars", width: 64, height: 64)
                Node.null("unseen")
            }
            Chain(from: "bars", port: "audio") {
                Node.opusEncoder()
                Join("publish", port: "audio")
            }
        }
    }

    private func expectTooLate(_ pipeline: MediaPipeline, _ graph: MediaGraph) async {
        let error = await #expect(throws: MediaError.self) { try await pipeline.apply(graph, within: 2) }
        let codes = [RoomError.Code.publishRefused.name, MediaError.Code.pipelineStalled]
        #expect(codes.contains(error?.code ?? ""), "\(error?.message ?? "")")
    }

    @Test func `a stream that the server takes after the edit has failed is unpublished`() async throws {
        try await run { scene in
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("source", width: 64, height: 64)
                    Node.videoEncoder("encoder", codec: .vp8)
                    publish(scene)
                }
            }
            let pipeline = try await MediaPipeline(graph, registry: RoomNodes.registry)
            try await pipeline.start()
            scene.relay.hold(true)
            await expectTooLate(pipeline, withTone(graph))
            scene.relay.hold(false)
            try await requireEventually("the end of the late stream") {
                scene.onlooker.seen.published == [.video, .audio] && scene.onlooker.seen.media == [.video]
            }
            try await pipeline.apply(withTone(graph), within: 8)
            try await requireEventually("audio") { scene.onlooker.seen.media == [.video, .audio] }
            await pipeline.stop()
        }
    }

    @Test func `an edit during a slow entry brings neither another participant nor another stream`() async throws {
        try await run { scene in
            // Its start does not wait for the room.
            let feed = Node(
                "feed", name: "source",
                settings: ["socket": .text(folder.file("feed.sock")), "width": 64, "height": 64, "fps": 20])
            let graph = MediaGraph {
                Chain {
                    feed
                    Node.videoEncoder("encoder", codec: .vp8)
                    publish(scene)
                }
            }
            scene.relay.hold(true)
            let pipeline = try await MediaPipeline(graph, registry: RoomNodes.registry)
            try await pipeline.start()
            await expectTooLate(pipeline, withTone(graph))
            scene.relay.hold(false)
            try await requireEventually("video") { scene.onlooker.seen.media == [.video] }
            try await pipeline.apply(withTone(graph), within: 8)
            try await requireEventually("audio") { scene.onlooker.seen.media.contains(.audio) }
            await pipeline.stop()
            #expect(scene.onlooker.seen.published == [.video, .audio])
            #expect(scene.onlooker.seen.entered == 1)
        }
    }

    @Test func `an edit publishes its stream while another one waits for its first frame`() async throws {
        try await run { scene in
            let elsewhere = scene.stage.settings(room: "elsewhere").mapValues { SettingValue.text($0) }
            let graph = MediaGraph {
                Chain {
                    Node("subscribe", name: "source", settings: elsewhere)
                    publish(scene)
                }
            }
            let pipeline = try await MediaPipeline(graph, registry: RoomNodes.registry)
            let start = Task { try await pipeline.start() }
            try await requireEventually("the participant") { scene.onlooker.seen.entered == 1 }
            try await pipeline.apply(withTone(graph), within: 8)
            try await requireEventually("audio") { scene.onlooker.seen.media == [.audio] }
            let other = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node.testPattern("bars", width: 64, height: 64)
                        Node.videoEncoder("encoder", codec: .vp8)
                        Node("publish", name: "publish", settings: elsewhere)
                    }
                }, registry: RoomNodes.registry)
            try await other.start()
            try await start.value
            try await requireEventually("video") { scene.onlooker.seen.media == [.audio, .video] }
            await pipeline.stop()
            await other.stop()
            #expect(scene.onlooker.seen.published == [.audio, .video])
        }
    }

    @Test func `streams without frames of a graph that has started keep no edit from publishing`() async throws {
        try await run { scene in
            let feed = Node(
                "feed", name: "source",
                settings: [
                    "socket": .text(folder.file("feed.sock")), "width": 64, "height": 64, "fps": 20, "away": "end",
                ])
            let graph = MediaGraph {
                Chain {
                    feed
                    Node.videoEncoder("encoder", codec: .vp8)
                    publish(scene)
                }
            }
            let pipeline = try await MediaPipeline(graph, registry: RoomNodes.registry)
            try await pipeline.start()
            try await pipeline.apply(withTone(graph), within: 8)
            try await requireEventually("audio") { scene.onlooker.seen.media == [.audio] }
            await pipeline.stop()
        }
    }

    @Test func `callers that enter a room at the same time are one participant`() async throws {
        try await run { scene in
            let node = Node("publish", settings: scene.stage.settings(room: "room").mapValues { .text($0) })
            let access = try RoomAccess(of: NodeRequest(node, PublishNode.kind, environment: SystemEnvironment()))
            let stay = RoomStay(access, options: RoomOptions(), onNews: { _ in }, onEvent: { _ in })
            let engines = try await withThrowingTaskGroup(of: RoomEngine.self) { group in
                for _ in 1...4 { group.addTask { try await stay.enter() } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(Set(engines.map { ObjectIdentifier($0) }).count == 1)
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    stay.leave()
                    continuation.resume()
                }
            }
            #expect(scene.onlooker.seen.entered == 1)
        }
    }
}

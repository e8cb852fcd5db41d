import GStreamerKit
import MediaGraph
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import MediaNodes
@testable import RoomClient

extension RoomStage {
    fileprivate func node(_ kind: String, _ more: [String: SettingValue] = [:]) -> Node {
        Node(kind, settings: settings(room: "room").mapValues { .text($0) }.merging(more) { $1 })
    }
}

/// The events of a pipeline, and the media of its renderers.
private final class Witness: Sendable {
    struct Seen {
        var frames: [(number: UInt32?, width: Int)] = []
        var loudest = -120.0
        var failure: MediaError?
    }

    private let state = Mutex(Seen())

    var seen: Seen { state.withLock { $0 } }

    /// Frames of a node "view" and audio of a node "ear".
    func bindings(view: Bool = false, ear: Bool = false) -> NodeBindings {
        var bindings = NodeBindings()
        if view {
            bindings.frames["view"] = { frame in
                let number = frame.barCode
                self.state.withLock { $0.frames.append((number, frame.width)) }
            }
        }
        if ear {
            bindings.audio["ear"] = { chunk in self.state.withLock { $0.loudest = max($0.loudest, chunk.level) } }
        }
        bindings.events = { event in
            if case .failed(let error) = event { self.state.withLock { $0.failure = error } }
        }
        return bindings
    }
}

@Suite(.serialized, .timeLimit(.minutes(1)))
struct RoomNodesTests {
    private func publishing(_ stage: RoomStage, codec: VideoCodec, hasSound: Bool = true) -> MediaGraph {
        MediaGraph {
            Chain {
                Node.testPattern("source")
                Node.videoEncoder("encoder", codec: codec)
                stage.node("publish")
            }
            if hasSound {
                Chain(from: "source", port: "audio") {
                    Node.opusEncoder()
                    Join("publish", port: "audio")
                }
            }
        }
    }

    private func watching(_ stage: RoomStage, codec: VideoCodec, hasSound: Bool = true) -> MediaGraph {
        MediaGraph {
            Chain {
                stage.node("subscribe", ["codec": .text(codec.rawValue)])
                Node.videoDecoder()
                Node.frames("view")
            }
            if hasSound {
                Chain(from: "subscribe", port: "audio") {
                    Node.audioDecoder()
                    Node.sound("ear")
                }
            }
        }
    }

    @Test(arguments: [VideoCodec.vp8, .h264])
    func `a stream published by one graph is received by another`(codec: VideoCodec) async throws {
        try await RoomStage.run { stage in
            let witness = Witness()
            let viewer = try await MediaPipeline(
                watching(stage, codec: codec), bindings: witness.bindings(view: true, ear: true),
                registry: RoomNodes.registry)
            // No participant publishes yet, which is not an error.
            try await viewer.start()
            let publisher = try await MediaPipeline(publishing(stage, codec: codec), registry: RoomNodes.registry)
            try await publisher.start()
            try await requireEventually("video and audio") {
                witness.seen.frames.count >= 30 && witness.seen.loudest > -40
            }
            #expect(publisher.statistics.rtpOutputs["publish.video"]?.frames ?? 0 >= 30)
            #expect(viewer.statistics.rtpInputs["subscribe.video"]?.framesDecoded ?? 0 >= 30)
            #expect(viewer.statistics.rtpInputs["subscribe.audio"]?.framesReceived ?? 0 > 20)
            await publisher.stop()
            await viewer.stop()
            let numbers = witness.seen.frames.compactMap(\.number)
            #expect(numbers.count == witness.seen.frames.count)
            #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 > $0 })
            // Only frames that a busy machine or its limited rate dropped and counted are missing.
            let missing = Int((numbers.last ?? 0) - (numbers.first ?? 0)) + 1 - numbers.count
            let encoder = publisher.statistics.encoders["encoder"]
            #expect(missing <= (encoder?.droppedBeforeEncoder ?? 0) + (encoder?.droppedForRate ?? 0))
            #expect(witness.seen.failure == nil)
        }
    }

    @Test
    func `a viewer gets smaller frames when the network carries less, or fewer ones of a video that keeps its detail`()
        async throws
    {
        try await RoomStage.run { stage in
            let witness = Witness()
            let viewer = try await MediaPipeline(
                watching(stage, codec: .vp8, hasSound: false), bindings: witness.bindings(view: true),
                registry: RoomNodes.registry)
            try await viewer.start()
            let publisher = try await MediaPipeline(
                publishing(stage, codec: .vp8, hasSound: false), registry: RoomNodes.registry)
            try await publisher.start()
            try await requireEventually("frames of the whole size") { witness.seen.frames.last?.width == 640 }
            let encoder = try #require(publisher.graph.node("encoder"))
            /// The room limits the encoder too. The least limit counts.
            func limit(until isEnough: () -> Bool) async throws {
                try await requireEventually("another quality") {
                    encoder.element("encoder").source.peer?.limitRate(bitsPerSecond: 200_000, source: 1)
                    return isEnough()
                }
            }
            try await limit { (witness.seen.frames.last?.width ?? 640) < 640 }
            #expect(publisher.statistics.encoders["encoder"]?.limitation == .network)
            try await publisher.set("publish", "degradation", to: "detail")
            try await limit {
                let encoder = publisher.statistics.encoders["encoder"]
                return witness.seen.frames.last?.width == 640 && (encoder?.framesPerSecond ?? 30) < 30
            }
            await publisher.stop()
            await viewer.stop()
            #expect(witness.seen.failure == nil)
        }
    }

    @Test func `a program that publishes and subscribes need not hear itself`() async throws {
        try await RoomStage.run { stage in
            let (all, others) = (Witness(), Witness())
            func listening(_ witness: Witness, own: Bool) async throws -> MediaPipeline {
                let graph = watching(stage, codec: .vp8, hasSound: false).setting("subscribe", "own", to: .flag(own))
                return try await MediaPipeline(
                    graph, bindings: witness.bindings(view: true), registry: RoomNodes.registry)
            }
            let pipelines = [
                try await listening(others, own: false), try await listening(all, own: true),
                try await MediaPipeline(publishing(stage, codec: .vp8, hasSound: false), registry: RoomNodes.registry),
            ]
            for pipeline in pipelines { try await pipeline.start() }
            try await requireEventually("pictures") { all.seen.frames.count >= 10 }
            #expect(others.seen.frames.isEmpty)
            for pipeline in pipelines { await pipeline.stop() }
        }
    }

    @Test func `a late subscriber begins at a keyframe, and continues with the next publisher`()
        async throws
    {
        try await RoomStage.run { stage in
            let first = try await MediaPipeline(
                publishing(stage, codec: .vp8, hasSound: false), registry: RoomNodes.registry)
            try await first.start()
            let keyframes = first.statistics.encoders["encoder"]?.keyframes ?? 0
            let witness = Witness()
            let viewer = try await MediaPipeline(
                watching(stage, codec: .vp8, hasSound: false), bindings: witness.bindings(view: true),
                registry: RoomNodes.registry)
            try await viewer.start()
            try await requireEventually("pictures") { witness.seen.frames.count >= 5 }
            // The request reached the encoder through the room, the graph and the payloader.
            #expect(first.statistics.encoders["encoder"]?.keyframes ?? 0 > keyframes)
            let second = try await MediaPipeline(
                publishing(stage, codec: .vp8, hasSound: false), registry: RoomNodes.registry)
            try await second.start()
            await first.stop()
            let sofar = witness.seen.frames.count
            try await requireEventually("frames of the second") { witness.seen.frames.count >= sofar + 10 }
            await second.stop()
            await viewer.stop()
            #expect(witness.seen.failure == nil)
        }
    }

    @Test func `an unreachable server fails the start with its code and the node's name`() async throws {
        var node = Node(
            "publish",
            settings: [
                "room": "room", "server": "ws://127.0.0.1:1", "service-id": "a", "service-secret": "b",
            ])
        node.name = "stage"
        let graph = MediaGraph {
            Chain {
                Node.testPattern("source")
                node
            }
        }
        let pipeline = try await MediaPipeline(graph, registry: RoomNodes.registry)
        let error = await #expect(throws: MediaError.self) { try await pipeline.start() }
        #expect(error?.code == "1305")
        #expect(error?.node == "stage")
        #expect(error?.message.hasPrefix("\"stage\": The server ws://127.0.0.1:1") == true)
    }

    @Test func `a server that removes both sides fails them with a code and the node's name`() async throws {
        let (publisherSide, viewerSide) = (Witness(), Witness())
        let pipelines = Mutex<[MediaPipeline]>([])
        try await RoomStage.run { stage in
            var stage = stage
            let token = try await stage.token()
            stage.nodesToken = token
            let publisher = try await MediaPipeline(
                publishing(stage, codec: .vp8), bindings: publisherSide.bindings(), registry: RoomNodes.registry)
            try await publisher.start()
            let viewer = try await MediaPipeline(
                watching(stage, codec: .vp8), bindings: viewerSide.bindings(view: true, ear: true),
                registry: RoomNodes.registry)
            try await viewer.start()
            pipelines.withLock { $0 = [publisher, viewer] }
            try await token.signOut()
        }
        try await requireEventually("both fail") { publisherSide.seen.failure != nil && viewerSide.seen.failure != nil }
        #expect(publisherSide.seen.failure?.code == "-11005")
        #expect(publisherSide.seen.failure?.node == "publish")
        #expect(viewerSide.seen.failure?.message.hasPrefix("\"subscribe\": ") == true)
        for pipeline in pipelines.withLock({ $0 }) { await pipeline.stop() }
    }

    @Test func `a stopped publish node has left the room when the stop returns`() async throws {
        try await RoomStage.run { stage in
            let others = Mutex<Int?>(nil)
            let publisher = try await MediaPipeline(publishing(stage, codec: .vp8), registry: RoomNodes.registry)
            try await publisher.start()
            await publisher.stop()
            let engine = RoomEngine { event in
                if case .connected(_, let present) = event { others.withLock { $0 = present.count } }
            }
            engine.connect(to: try RoomName("room"), with: try await stage.token())
            try await requireEventually("connected") { others.withLock { $0 } != nil }
            #expect(others.withLock { $0 } == 0)
            engine.disconnect()
        }
    }

    @Test func `faults that are visible before a run are refused in the plan`() throws {
        let environment = SystemEnvironment()
        func refusal(_ graph: MediaGraph) -> MediaError? {
            do throws(MediaError) {
                _ = try Planner(RoomNodes.registry, environment).plan(graph)
                return nil
            } catch {
                return error
            }
        }
        let badName = refusal(
            MediaGraph {
                Chain {
                    Node.testPattern("source")
                    Node("publish", settings: ["room": "my room"])
                }
            })
        #expect(badName?.code == MediaError.Code.graphInvalid)
        #expect(badName?.message.contains("\"publish\": room is \"my room\"; write 1 to 32 letters") == true)
        let nothing = refusal(MediaGraph { Node("publish", settings: ["room": "room"]) })
        #expect(nothing?.code == MediaError.Code.graphInvalid)
        #expect(nothing?.message.hasPrefix("Nothing feeds publish.video or publish.audio.") == true)
        let badServer = refusal(
            MediaGraph {
                Chain {
                    Node.testPattern("source")
                    Node("publish", settings: ["room": "room", "server": "ftp://x/"])
                }
            })
        #expect(badServer?.code == MediaError.Code.graphInvalid)
        #expect(badServer?.message.contains("ws://HOST:PORT") == true)
    }
}

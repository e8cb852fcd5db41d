import MediaGraph
import MediaNodes
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import RoomClient

/// Edits of a graph that publishes, as the room notices them.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct PublishEditTests {
    private static func publish(_ stage: RoomStage, _ name: String = "publish") -> Node {
        Node("publish", name: name, settings: stage.settings(room: "room").mapValues { .text($0) })
    }

    private static func graph(_ stage: RoomStage, hasSound: Bool) -> MediaGraph {
        MediaGraph {
            Chain {
                Node.testPattern("source", width: 320, height: 240)
                Node.videoEncoder("encoder", codec: .vp8)
                publish(stage)
            }
            if hasSound {
                Chain(from: "source", port: "audio") {
                    Node.opusEncoder()
                    Join("publish", port: "audio")
                }
            }
        }
    }

    @Test func `audio that is removed and added again costs no frame, and the participant stays`() async throws {
        try await RoomStage.run { stage in
            let onlooker = Onlooker()
            let engine = try await onlooker.enter(stage)
            let numbers = Mutex<[UInt32]>([])
            let loudest = Mutex(-120.0)
            var bindings = NodeBindings()
            bindings.frames["view"] = { frame in
                if let number = frame.barCode { numbers.withLock { $0.append(number) } }
            }
            bindings.audio["ear"] = { chunk in loudest.withLock { $0 = max($0, chunk.level) } }
            let viewer = try await MediaPipeline(
                MediaGraph {
                    Chain {
                        Node("subscribe", settings: stage.settings(room: "room").mapValues { .text($0) })
                        Node.videoDecoder()
                        Node.frames("view")
                    }
                    Chain(from: "subscribe", port: "audio") {
                        Node.audioDecoder()
                        Node.sound("ear")
                    }
                }, bindings: bindings, registry: RoomNodes.registry)
            try await viewer.start()
            let pipeline = try await MediaPipeline(Self.graph(stage, hasSound: true), registry: RoomNodes.registry)
            try await pipeline.start()
            try await requireEventually("video and audio") {
                numbers.withLock { $0.count } > 10 && loudest.withLock { $0 } > -40
            }
            let withoutSound = try await pipeline.apply(Self.graph(stage, hasSound: false), within: 8)
            #expect(withoutSound.description == "removes opus-encoder")
            #expect(pipeline.plan.node("publish")?.inputs.keys.sorted() == ["video"])
            let before = numbers.withLock { $0.count }
            try await requireEventually("video without audio") { numbers.withLock { $0.count } > before + 10 }
            loudest.withLock { $0 = -120 }
            let withSound = try await pipeline.apply(Self.graph(stage, hasSound: true), within: 8)
            #expect(withSound.description == "adds opus-encoder")
            try await requireEventually("sound again") { loudest.withLock { $0 } > -40 }
            let (seen, all) = (onlooker.seen, numbers.withLock { $0 })
            let encoder = pipeline.statistics.encoders["encoder"]
            let lost = (encoder?.droppedBeforeEncoder ?? 0) + (encoder?.droppedForRate ?? 0)
            await pipeline.stop()
            await viewer.stop()
            engine.disconnect()
            // The viewer and the one participant that publishes.
            #expect(seen.entered == 2)
            #expect(seen.left == 0)
            #expect(seen.published.count == 2)
            #expect(zip(all, all.dropFirst()).allSatisfy(<))
            #expect(Int((all.last ?? 0) - (all.first ?? 0)) + 1 - all.count <= lost)
        }
    }

    @Test func `audio that is added later is another stream of the same participant`() async throws {
        try await RoomStage.run { stage in
            let onlooker = Onlooker()
            let engine = try await onlooker.enter(stage)
            let pipeline = try await MediaPipeline(Self.graph(stage, hasSound: false), registry: RoomNodes.registry)
            try await pipeline.start()
            try await pipeline.apply(Self.graph(stage, hasSound: true), within: 8)
            try await requireEventually("both streams") { onlooker.seen.published == [.video, .audio] }
            await pipeline.stop()
            engine.disconnect()
            #expect(onlooker.seen.entered == 1)
        }
    }

    @Test func `an edit that fails brings no participant into the room`() async throws {
        try await RoomStage.run { stage in
            let onlooker = Onlooker()
            let engine = try await onlooker.enter(stage)
            let pipeline = try await MediaPipeline(Self.graph(stage, hasSound: false), registry: RoomNodes.registry)
            try await pipeline.start()
            // The second participant could publish immediately, but the other new node delivers nothing.
            let silent = Self.graph(stage, hasSound: false).adding {
                Chain(from: "encoder") { Self.publish(stage, "second") }
                Chain {
                    Node.process("silent", command: "sleep 100")
                    Node.null("nothing")
                }
            }
            let error = await #expect(throws: MediaError.self) { try await pipeline.apply(silent, within: 0.5) }
            #expect(error?.code == MediaError.Code.editFailed)
            try await requireEventually("the first participant") { onlooker.seen.entered >= 1 }
            await pipeline.stop()
            try await requireEventually("the first participant leaves") { onlooker.seen.left >= 1 }
            engine.disconnect()
            #expect(onlooker.seen.entered == 1)
        }
    }
}

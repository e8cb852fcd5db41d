import MediaGraph
import MediaNodes
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import RoomClient

/// A test pattern that is published in layers, by real encoders.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct LayeredPublishingTests {
    /// A frame of a layer, as a room gets it.
    private struct Frame {
        var layer: VideoLayer
        var timestamp: UInt32
        var captured: MediaTime
        /// Of a keyframe of VP8 (RFC 6386, section 9.1).
        var size: [Int]?

        init(_ batch: RTPBatch) {
            (layer, timestamp, captured) = (batch.layer, batch.rtpTimestamp, batch.captureTime)
            let start: [UInt8] = [0x9d, 0x01, 0x2a]
            guard batch.isKeyframe,
                let place = batch.bytes.indices.dropLast(6).first(where: { Array(batch.bytes[$0..<($0 + 3)]) == start })
            else { return }
            size = [3, 5].map { Int(batch.bytes[place + $0]) | Int(batch.bytes[place + $0 + 1] & 0x3f) << 8 }
        }
    }

    private final class Rooms: Sendable {
        let streams = OutgoingStreams()
        private let taken = Mutex<[Frame]>([])
        var frames: [Frame] { taken.withLock { $0 } }

        func connect(_ track: any OutgoingTrack) {
            track.connect(
                TrackReceiver(
                    take: { [weak self] batch in self?.taken.withLock { $0.append(Frame(batch)) } }, stateChanged: {}))
        }

        func count(_ layer: VideoLayer) -> Int { frames.count { $0.layer == layer } }
    }

    private func graph(layers: Int, width: Int = 960, height: Int = 540) -> MediaGraph {
        MediaGraph {
            Chain {
                Node.testPattern("source", width: width, height: height, framesPerSecond: 15)
                Node(PublishNode.localKind.name, name: "output", settings: ["layers": .integer(layers)])
            }
        }
    }

    private func run(_ graph: MediaGraph, _ body: (MediaPipeline, Rooms, any OutgoingTrack) async throws -> Void)
        async throws
    {
        let rooms = Rooms()
        let registry = NodeRegistry.builtIn.adding([PublishNode.feeding(rooms.streams)])
        let pipeline = try await MediaPipeline(graph, registry: registry)
        try await pipeline.start()
        let track = try #require(rooms.streams.stream(of: .video)).track()
        rooms.connect(track)
        do {
            try await body(pipeline, rooms, track)
        } catch {
            await pipeline.stop()
            throw error
        }
        await pipeline.stop()
    }

    private func want(_ layers: VideoLayer..., of track: any OutgoingTrack) {
        for layer in VideoLayer.allCases {
            track.limitRate(bitsPerSecond: layers.contains(layer) ? 10_000_000 : 0, of: layer, keepsSize: true)
        }
    }

    @Test func `three layers of one capture have their sizes and common timestamps`() async throws {
        try await run(graph(layers: 3)) { _, rooms, track in
            // Those before the room had the track are not seen.
            for layer in VideoLayer.allCases { track.requestKeyframe(of: layer) }
            try await requireEventually("frames of all layers") {
                want(.quarter, .half, .full, of: track)
                let frames = rooms.frames
                return VideoLayer.allCases.allSatisfy { layer in
                    rooms.count(layer) > 20 && frames.contains { $0.layer == layer && $0.size != nil }
                }
            }
            let frames = rooms.frames
            for layer in VideoLayer.allCases {
                let sizes = Set(frames.filter { $0.layer == layer }.compactMap(\.size))
                #expect(sizes == [[layer.scaled(960), layer.scaled(540)]])
            }
            let timestamps = Dictionary(grouping: frames, by: { $0.captured.nanoseconds }).values
            #expect(timestamps.contains { Set($0.map(\.layer)).count == 3 })
            #expect(timestamps.allSatisfy { Set($0.map(\.timestamp)).count == 1 })
        }
    }

    @Test func `a layer that is off is not encoded, and returns at a keyframe`() async throws {
        try await run(graph(layers: 3)) { pipeline, rooms, track in
            func encoded(_ layer: VideoLayer) -> Int { track.encoderStatistics(of: layer)?.encoded ?? 0 }
            try await requireEventually("frames of the whole size") {
                want(.full, of: track)
                return rooms.count(.full) > 10
            }
            #expect(encoded(.half) <= 1 && encoded(.quarter) <= 1, "the first frame shows that the encoder works")
            #expect(track.encoderStatistics(of: .half)?.isResting == true)
            try await requireEventually("frames of the others") {
                want(.quarter, .half, of: track)
                return rooms.count(.half) > 5 && rooms.count(.quarter) > 5
            }
            #expect(track.encoderStatistics(of: .full)?.isResting == true)
            let (before, passed) = (encoded(.full), rooms.count(.quarter))
            try await requireEventually("more frames") {
                want(.quarter, .half, of: track)
                return rooms.count(.quarter) > passed + 10
            }
            #expect(encoded(.full) == before)
            let place = rooms.frames.count
            track.requestKeyframe(of: .full)
            try await requireEventually("the whole size again") {
                want(.full, of: track)
                return rooms.count(.full) > 15
            }
            let back = rooms.frames[place...].first { $0.layer == .full }
            #expect(back?.size == [960, 540])
        }
    }

    @Test func `a recording of the whole size goes on while no room watches that`() async throws {
        let folder = TemporaryFolder()
        let graph = MediaGraph {
            Chain {
                Node.testPattern("source", width: 960, height: 540, framesPerSecond: 15)
                Tee { Node("recorder", settings: ["path": .text(folder.file("film.mkv"))]) }
                Node(PublishNode.localKind.name, name: "output", settings: ["layers": 3])
            }
        }
        try await run(graph) { pipeline, rooms, track in
            #expect(pipeline.plan.encoders.count == 3)
            func recorded() -> Int { pipeline.statistics.recorders["recorder"]?.frames ?? 0 }
            for _ in 0..<2 {
                let (before, small) = (recorded(), rooms.count(.quarter))
                try await requireEventually("frames of the quarter") {
                    want(.quarter, of: track)
                    return rooms.count(.quarter) > small + 10 && recorded() > before + 5
                }
            }
        }
    }

    @Test func `an edit adds and removes layers while the video continues`() async throws {
        try await run(graph(layers: 1)) { pipeline, rooms, track in
            #expect(track.layers.isEmpty)
            let more = try await pipeline.apply(graph(layers: 3), within: 10)
            #expect(more.removed.isEmpty, "\(more)")
            #expect(track.layers == [.quarter, .half, .full])
            try await requireEventually("frames of all layers") {
                want(.quarter, .half, .full, of: track)
                return VideoLayer.allCases.allSatisfy { rooms.count($0) > 5 }
            }
            let fewer = try await pipeline.apply(graph(layers: 1), within: 10)
            #expect(fewer.added.isEmpty, "\(fewer)")
            #expect(track.layers.isEmpty)
            let before = rooms.count(.full)
            try await requireEventually("the video") { rooms.count(.full) > before + 5 }
        }
    }

    @Test func `H.264 of a file is the whole size as it is, and the others are decoded from it, with its timestamps`()
        async throws
    {
        let folder = TemporaryFolder()
        let path = folder.file("film.mp4")
        try await MediaPipeline(
            MediaGraph {
                Chain {
                    Node.testPattern("source", width: 960, height: 540, framesPerSecond: 15, frames: 30)
                    Node.videoEncoder("encoder", codec: .h264, keyframeInterval: 10)
                    Node("recorder", settings: ["path": .text(path)])
                }
            }
        ).run()
        let film = MediaGraph {
            Chain {
                Node.file("source", path: path, loop: true)
                Node(PublishNode.localKind.name, name: "output", settings: ["layers": 3])
            }
        }
        try await run(film) { pipeline, rooms, track in
            #expect(pipeline.plan.encoders.count == 2)
            #expect(Set(pipeline.plan.links(into: "output").map(\.format.encoding)) == ["h264"])
            try await requireEventually("frames of all layers") {
                want(.quarter, .half, .full, of: track)
                return VideoLayer.allCases.allSatisfy { rooms.count($0) > 20 }
            }
            #expect(track.encoderStatistics(of: .full) == nil)
            let timestamps = Dictionary(grouping: rooms.frames, by: { $0.captured.nanoseconds }).values
            #expect(timestamps.contains { Set($0.map(\.layer)).count == 3 })
            #expect(timestamps.allSatisfy { Set($0.map(\.timestamp)).count == 1 })
        }
    }

    @Test func `a layer that a graph links itself is smaller than the video, and has its codec`() async throws {
        func refusal(_ encoder: Node, width: Int = 320, height: Int = 180) async -> String? {
            let graph = MediaGraph {
                Chain {
                    Node.testPattern("source", width: 640, height: 360)
                    Tee {
                        Node(
                            "scale", name: "smaller", settings: ["width": .integer(width), "height": .integer(height)])
                        encoder
                        Join("publish", port: "half")
                    }
                    Node.videoEncoder("encoder", codec: .vp8)
                    Node("publish", settings: ["room": "room"])
                }
            }
            do {
                _ = try await MediaPipeline.plan(graph, registry: RoomNodes.registry)
                return nil
            } catch {
                return "\(error)"
            }
        }
        let small = Node.videoEncoder("small", codec: .vp8)
        #expect(await refusal(small) == nil)
        #expect(await refusal(small, width: 640, height: 360)?.contains("in a smaller size") == true)
        #expect(await refusal(Node.videoEncoder("small", codec: .h264))?.contains("the same codec") == true)
    }

    @Test func `a viewer gets the layer for its view from the room server, in one stream without a gap`() async throws {
        try await RoomStage.run { stage in
            let settings = stage.settings(room: "room").mapValues { SettingValue.text($0) }
            let warnings = Mutex<[String]>([])
            var bindings = NodeBindings()
            bindings.events = { event in
                if case .warning(_, let message) = event { warnings.withLock { $0.append(message) } }
            }
            func graph(_ layers: Int) -> MediaGraph {
                MediaGraph {
                    Chain {
                        Node.testPattern("source", width: 960, height: 540, framesPerSecond: 15)
                        Node("publish", settings: settings.merging(["layers": .integer(layers)]) { $1 })
                    }
                }
            }
            let publisher = try await MediaPipeline(graph(3), bindings: bindings, registry: RoomNodes.registry)
            let witness = StreamWitness()
            let engine = try await witness.enter(stage)
            try await publisher.start()
            func sees(_ layer: VideoLayer) async throws {
                try await requireEventually("the \(layer) layer") {
                    witness.seen.sizes.last == [layer.scaled(960), layer.scaled(540)]
                }
                try await witness.more(5)
            }
            try await witness.watch(engine, view: StreamView(width: 160, height: 90))
            try await sees(.quarter)
            let id = witness.seen.streams[0]
            for (view, layer) in [
                (StreamView(width: 1920, height: 1080), VideoLayer.full), (StreamView(width: 480, height: 270), .half),
                (StreamView(width: 160, height: 90), .quarter),
            ] {
                engine.setView(view, of: id) { _ in }
                try await sees(layer)
            }
            try await requireEventually("the whole size rests, because nobody watches it") {
                publisher.statistics.encoders["source-vp8"]?.isResting == true
            }
            #expect(witness.seen.isOneStream(within: 5))
            // The viewer has watched a layer that is there no longer.
            for (layers, layer) in [(1, VideoLayer.full), (3, .quarter), (2, .half)] {
                try await publisher.apply(graph(layers), within: 10)
                try await sees(layer)
            }
            #expect(witness.seen.isOneStream(within: 5))
            let more = await #expect(throws: MediaError.self) { try await publisher.set("publish", "layers", to: 3) }
            #expect(more?.message.contains("the graph that runs encodes 2") == true)
            #expect(warnings.withLock { $0 }.isEmpty)
            engine.disconnect()
            await publisher.stop()
        }
    }
}

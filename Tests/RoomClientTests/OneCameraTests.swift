import Cameras
import Foundation
import GStreamerKit
import MediaGraph
import TestFixtures
import TestSupport
import Testing

@testable import MediaNodes
@testable import RoomClient

/// A camera with five uses at once, each of which goes and comes again.
private final class SharedCamera {
    enum Use: String, CaseIterable { case room, preview, recording, snapshot, function }

    /// From one frame of the camera to the next, in seconds.
    static let interval = 1.0 / 30

    let camera: FixtureCamera
    let pipeline: MediaPipeline
    private let graphs: Graphs
    private let watch: NodeWatch
    /// How often each use has begun.
    private var rounds = [Use: Int](uniqueKeysWithValues: Use.allCases.map { ($0, 1) })
    /// The capture times of the frames of each round, in seconds.
    private(set) var times: [Use: [Collected<Double>]] = [:]
    /// Frames that a queue of a busy machine dropped and counted, over all rounds.
    private var drops: [Use: Int] = [:]

    /// - Parameter source: the node to which the room and the recording are linked: the camera, or an encoder of the graph.
    init(_ stage: RoomStage, source: String) async throws {
        let folder = TemporaryFolder()
        let name = try CameraFile.write([], to: folder)
        graphs = Graphs(stage: stage, camera: name, folder: folder, source: source)
        camera = try #require(CameraSystem.machine.recorded(name))
        var times: [Use: [Collected<Double>]] = [:]
        pipeline = try await MediaPipeline(
            graphs.graph(Set(Use.allCases), rounds), bindings: Self.bindings(Use.allCases, &times),
            registry: RoomNodes.registry)
        watch = pipeline.watch()
        self.times = times
    }

    private struct Graphs {
        let stage: RoomStage
        let camera: String
        let folder: TemporaryFolder
        let source: String

        func path(_ use: Use, _ rounds: [Use: Int]) -> String { folder.file("\(use)-\(rounds[use] ?? 0)") }

        func graph(_ uses: Set<Use>, _ rounds: [Use: Int]) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node.camera(device: camera, width: 64, height: 48, framesPerSecond: 30)
                    if source == "encoder" { Node.videoEncoder("encoder", codec: .vp8) }
                }
                if uses.contains(.room) {
                    Chain(from: source) {
                        Node("publish", settings: stage.settings(room: "room").mapValues { .text($0) })
                    }
                }
                if uses.contains(.recording) {
                    Chain(from: source) {
                        Node(
                            "recorder", name: "recording", settings: ["path": .text(path(.recording, rounds) + ".mkv")])
                    }
                }
                if uses.contains(.preview) { Chain(from: "camera") { Node.frames("preview") } }
                if uses.contains(.snapshot) {
                    Chain(from: "camera") {
                        Node("snapshot", settings: ["path": .text(path(.snapshot, rounds) + ".png"), "frame": 3])
                    }
                }
                if uses.contains(.function) {
                    Chain(from: "camera") {
                        Node("frame-function", name: "function")
                        Node.null("end")
                    }
                }
            }
        }
    }

    private static func bindings(_ uses: [Use], _ times: inout [Use: [Collected<Double>]]) -> NodeBindings {
        var bindings = NodeBindings()
        for use in uses where use == .preview || use == .function {
            let seen = Collected<Double>()
            times[use, default: []].append(seen)
            if use == .preview {
                bindings.frames["preview"] = { seen.append($0.captureTime.seconds) }
            } else {
                bindings.frameFunctions["function"] = { seen.append($0.captureTime.seconds) }
            }
        }
        return bindings
    }

    func remove(_ use: Use) async throws {
        countDrops(of: use)
        let graph = graphs.graph(Set(Use.allCases).subtracting([use]), rounds)
        try await pipeline.apply(graph, bindings: NodeBindings(), within: 8)
    }

    func add(_ use: Use) async throws {
        rounds[use, default: 0] += 1
        let graph = graphs.graph(Set(Use.allCases), rounds)
        try await pipeline.apply(graph, bindings: Self.bindings([use], &times), within: 8)
    }

    func stop() async {
        for use in Use.allCases { countDrops(of: use) }
        await pipeline.stop()
    }

    var hasSnapshot: Bool { FileManager.default.fileExists(atPath: graphs.path(.snapshot, rounds) + ".png") }

    /// The frames of the present round. A snapshot takes one alone.
    func frames(of use: Use) -> Int {
        switch use {
        case .room: pipeline.statistics.rtpOutputs["publish.video"]?.frames ?? 0
        case .recording: pipeline.statistics.recorders["recording"]?.frames ?? 0
        case .preview, .function: times[use]?.last?.count ?? 0
        case .snapshot: 0
        }
    }

    private func countDrops(of use: Use) {
        let node = watch.sample().first { $0.node == use.rawValue }
        drops[use, default: 0] += node?.dropped.map(\.frames).reduce(0, +) ?? 0
    }

    /// The frames that may be missing in a use on a busy machine: those that its queue dropped and counted, and those that
    /// were lost before the first branch.
    func mayLack(_ use: Use) -> Int {
        let encoder = pipeline.statistics.encoders.values.map(\.droppedBeforeEncoder).reduce(0, +)
        // The preview and the function are never away together.
        let all = [Use.preview, .function].flatMap { times[$0]?.flatMap(\.all) ?? [] }
        let start = all.min() ?? 0
        let shown = Set(all.map { (($0 - start) / Self.interval).rounded() * Self.interval }).sorted()
        return (use == .room || use == .recording ? encoder : drops[use] ?? 0) + (missing(in: shown) ?? 0)
    }

    /// The times of the frames in a recording, in seconds.
    func recorded(in round: Int) async throws -> [Double] {
        let (times, events) = (Collected<Double>(), Collected<Bool>())
        var bindings = NodeBindings()
        bindings.frames["view"] = { times.append($0.captureTime.seconds) }
        bindings.events = { if case .ended = $0 { events.append(true) } }
        let clock = SteppedClock()
        let reading = try await MediaPipeline(
            MediaGraph {
                Chain {
                    Node.file("clip", path: graphs.path(.recording, [.recording: round]) + ".mkv", loop: false)
                    Node.frames("view")
                }
            }, bindings: bindings, limits: Limits(), clock: clock.clock)
        clock.run(whenever: { times.count >= $0 - 1 })
        try await reading.start()
        await eventually("the end of recording \(round)") { events.count > 0 }
        await reading.stop()
        return times.all
    }
}

extension MediaTime {
    fileprivate var seconds: Double { Double(nanoseconds) / 1e9 }
}

/// How many frames of the camera are missing between the first and the last. Nil if some came twice or late.
private func missing(in times: [Double]) -> Int? {
    let steps = zip(times, times.dropFirst()).map { (($1 - $0) / SharedCamera.interval).rounded() }
    return steps.allSatisfy { $0 >= 1 } ? steps.map { Int($0) - 1 }.reduce(0, +) : nil
}

@Suite(.serialized, .timeLimit(.minutes(2)))
struct OneCameraTests {
    /// The encoder is of the graph, or the planner inserts one.
    @Test(arguments: ["encoder", "camera"])
    func `five uses share a camera and an encoder, and one that goes or comes disturbs no other`(source: String)
        async throws
    {
        try await RoomStage.run { stage in
            let shared = try await SharedCamera(stage, source: source)
            let encoders = shared.pipeline.plan.encoders
            #expect(encoders.count == 1)
            var witnesses = [StreamWitness()]
            var engines = [try await witnesses[0].enter(stage)]
            func expectSharing() {
                #expect(shared.camera.streams == 1)
                #expect(shared.pipeline.plan.encoders == encoders)
                #expect(shared.pipeline.statistics.encoders.count == 1)
            }
            func expectFrames(without gone: SharedCamera.Use? = nil) async throws {
                for use in SharedCamera.Use.allCases where use != gone {
                    let before = shared.frames(of: use)
                    try await requireEventually("\(use) goes on, without \(gone?.rawValue ?? "none")") {
                        use == .snapshot ? shared.hasSnapshot : shared.frames(of: use) >= before + 5
                    }
                }
                expectSharing()
            }
            try await shared.pipeline.start()
            try await witnesses[0].watch(engines[0])
            try await witnesses[0].more(5)
            try await expectFrames()
            for use in SharedCamera.Use.allCases {
                try await shared.remove(use)
                try await expectFrames(without: use)
                if use == .room {
                    witnesses.append(StreamWitness())
                    engines.append(try await witnesses[1].enter(stage))
                }
                try await shared.add(use)
                if use == .room {
                    try await witnesses[1].watch(engines[1])
                    try await witnesses[1].more(5)
                }
                try await expectFrames()
            }
            await shared.stop()
            for engine in engines { engine.disconnect() }
            expectSharing()
            var seen = shared.times.mapValues { $0.map(\.all) }
            seen[.room] = witnesses.map { witness in
                let timestamps = witness.seen.timestamps
                return timestamps.map { Double(Int32(bitPattern: $0 &- timestamps[0])) / 90_000 }
            }
            seen[.recording] = [try await shared.recorded(in: 1), try await shared.recorded(in: 2)]
            for (use, rounds) in seen {
                #expect(rounds.count == 2 && rounds.allSatisfy { $0.count > 5 }, "\(use)")
                let lacking = rounds.map(missing)
                let sum = try #require(lacking.compactMap(\.self).count == 2 ? lacking : nil, "\(use): \(rounds)")
                #expect(sum.compactMap(\.self).reduce(0, +) <= shared.mayLack(use), "\(use): \(lacking), \(rounds)")
            }
        }
    }
}

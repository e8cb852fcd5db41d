import GStreamerKit
package import MediaGraph
package import MediaTesting
import Synchronization

/// Tries a capturer of any kind in a whole pipeline, `kind -> frames` or `kind -> sound`: those that ship, and those that
/// are made of elements.
package struct PipelineStand: CaptureStand {
    /// Gives a node what the program pushes, until it is cancelled: the settings are those of the node.
    package typealias Feeding = @Sendable (FrameInput, [String: SettingValue]) async throws -> Void

    private static let node = "tried"

    package let leavingLimit: Double
    private let kind: NodeKind
    private let port: Port
    private let registry: NodeRegistry
    private let untried: Set<String>
    private let feeding: Feeding?

    /// `untried` are settings that need more than a value to be tried. All of the pipeline goes with the capturer, decoders
    /// among it, so leaving may take 100 ms, and longer on a machine that is emulated. Throws `graph.invalid` for a kind
    /// that has no such output.
    package init(
        _ kind: String, output: String = "video", registry: NodeRegistry = .builtIn,
        leavingUntried untried: Set<String> = [], leavingLimit: Double = 0.1, feeding: Feeding? = nil
    ) throws(MediaError) {
        guard let found = registry.kind(named: kind), let port = found.output(output) else {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "There is no kind of node \"\(kind)\" with an output \"\(output)\" to try.")
        }
        self.kind = found
        self.port = port
        self.registry = registry
        self.untried = untried
        self.leavingLimit = leavingLimit
        self.feeding = feeding
    }

    package var name: String { kind.outputs.count > 1 ? "\(kind.name) (\(port.name))" : kind.name }
    package var settings: [SettingContract] { kind.settings.filter { !untried.contains($0.name) } }
    /// A pipeline gives its capturers eight seconds.
    package var patience: Double { 10 }
    /// The allocator takes 16 MB at once when a thread is the first to use a pool of its own.
    package var memoryLimit: Int { 60_000_000 }

    private var isSound: Bool { port.kinds.isSubset(of: [.rawAudio, .encodedAudio]) }

    /// What is not taken waits or goes by the rules of the pipeline's queues, which are not the capturer's.
    package func offers(_ consumer: CaptureConsumer) -> Bool { consumer == .quick }

    package func format(_ settings: [String: SettingValue]) throws -> MediaFormat? {
        var bound = NodeBindings()
        bind(&bound, frame: { _ in }, sound: { _ in })
        let plan = try Planner(registry, SystemEnvironment()).plan(graph(settings), bound: bound.names)
        guard let format = plan.node(Self.node)?.formats[port.name] else { return nil }
        return isSound
            ? .rawAudio
            : .rawVideo(width: format.width, height: format.height, framesPerSecond: format.framesPerSecond)
    }

    package func open(
        _ settings: [String: SettingValue], _ consumer: CaptureConsumer
    ) async throws -> any CaptureRun {
        let seen = SeenUnits()
        var bindings = NodeBindings()
        bind(
            &bindings,
            frame: { seen.append(CapturedUnit($0)) }, sound: { seen.append(CapturedUnit($0)) })
        bindings.events = { event in
            switch event {
            case .ended: seen.end(.ended)
            case .failed(let error): seen.end(.failed(error))
            default: break
            }
        }
        let pipeline = try await MediaPipeline(graph(settings), bindings: bindings, registry: registry)
        let given = kind.settings.reduce(into: [:]) { $0[$1.name] = settings[$1.name] ?? $1.defaultValue }
        return PipelineRun(pipeline, seen, node: Self.node) { [feeding] in
            if let feeding, let input = pipeline.frameInput(Self.node) { try await feeding(input, given) }
        }
    }

    private func bind(
        _ bindings: inout NodeBindings, frame: @escaping @Sendable (VideoFrame) -> Void,
        sound: @escaping @Sendable (AudioChunk) -> Void
    ) {
        if isSound { bindings.audio["end"] = sound } else { bindings.frames["end"] = frame }
    }

    /// The capturer, what looks at it, and an end for every other output that must have one.
    private func graph(_ settings: [String: SettingValue]) -> MediaGraph {
        var graph = MediaGraph(
            nodes: [Node(kind.name, name: Self.node, settings: settings), isSound ? .sound("end") : .frames("end")],
            links: [
                Link(from: PortReference(node: Self.node, port: port.name), to: PortReference(node: "end", port: "in"))
            ])
        for other in kind.outputs where other.name != port.name && other.isRequired {
            graph.nodes.append(.null("null-\(other.name)"))
            graph.links.append(
                Link(
                    from: PortReference(node: Self.node, port: other.name),
                    to: PortReference(node: "null-\(other.name)", port: "in")))
        }
        return graph
    }
}

/// What has come, as it is seen from threads of GStreamer's.
private final class SeenUnits: Sendable {
    private struct State {
        var units: [CapturedUnit] = []
        var outcome: CaptureOutcome?
    }

    private let state = Mutex(State())

    var units: [CapturedUnit] { state.withLock { $0.units } }
    var outcome: CaptureOutcome? { state.withLock { $0.outcome } }

    func append(_ unit: CapturedUnit) {
        state.withLock { $0.units.append(unit) }
    }

    /// The first end counts.
    func end(_ outcome: CaptureOutcome) {
        state.withLock { $0.outcome = $0.outcome ?? outcome }
    }
}

private final class PipelineRun: CaptureRun {
    private let pipeline: MediaPipeline
    private let seen: SeenUnits
    private let node: String
    private let starting: Task<Void, Never>

    init(
        _ pipeline: MediaPipeline, _ seen: SeenUnits, node: String, feed: @escaping @Sendable () async throws -> Void
    ) {
        self.pipeline = pipeline
        self.seen = seen
        self.node = node
        let feeding = Task.detached { try await feed() }
        starting = Task.detached {
            do {
                try await pipeline.start()
                await withTaskCancellationHandler {
                    _ = await feeding.result
                } onCancel: {
                    feeding.cancel()
                }
            } catch {
                feeding.cancel()
                seen.end(.failed(error))
            }
        }
    }

    var units: [CapturedUnit] { seen.units }
    var outcome: CaptureOutcome? { seen.outcome }

    func set(_ setting: String, to value: SettingValue) async throws {
        try await pipeline.set(node, setting, to: value)
    }

    func stop() async -> Double? {
        seen.end(.cancelled)
        starting.cancel()
        let began = MediaTime.now
        await pipeline.stop()
        let seconds = MediaTime.now.seconds(since: began)
        await starting.value
        return seconds
    }
}

extension CapturedUnit {
    fileprivate init(_ frame: VideoFrame) {
        self.init(
            format: .rawVideo(width: frame.width, height: frame.height), time: frame.captureTime, arrival: .now)
    }

    fileprivate init(_ chunk: AudioChunk) {
        self.init(format: .rawAudio, time: chunk.captureTime, arrival: .now)
        duration = chunk.seconds
    }
}

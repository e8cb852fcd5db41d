import GStreamerKit
import MediaGraph
package import MediaTesting
import Synchronization

/// Tests a capturer or processor in a whole pipeline that ends in `frames` or `sound`: built-in ones, and those made of
/// elements. A test pattern feeds a processor.
package struct PipelineStand: NodeStand {
    /// Feeds a node with pushed media until it is cancelled. The settings are those of the node.
    package typealias Feeding = @Sendable (FrameInput, [String: SettingValue]) async throws -> Void

    private static let node = "tried"
    private static let source = "source"

    package let leavingLimit: Double
    private let kind: NodeKind
    private let port: Port
    private let registry: NodeRegistry
    private let untried: Set<String>
    private let feeding: Feeding?

    /// `untried` are settings that need more than a value for a test. The whole pipeline stops with the capturer,
    /// including decoders, so that may take 100 ms, and longer on an emulated machine. Throws `graph.invalid` for a
    /// kind without that output.
    package init(
        _ kind: String, output: String = "video", registry: NodeRegistry = .builtIn,
        leavingUntried untried: Set<String> = [], leavingLimit: Double = 0.1, feeding: Feeding? = nil
    ) throws(MediaError) {
        guard let found = registry.kind(named: kind), let port = found.output(output) else {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "There is no kind of node \"\(kind)\" with an output \"\(output)\" to test.")
        }
        self.kind = found
        self.port = port
        self.registry = registry
        self.untried = untried
        self.leavingLimit = leavingLimit
        self.feeding = feeding
    }

    package var name: String { kind.outputs.count > 1 ? "\(kind.name) (\(port.name))" : kind.name }
    package var group: Conformance.Group { kind.inputs.isEmpty ? .capturer : .processor }
    package var settings: [SettingContract] { kind.settings.filter { !untried.contains($0.name) } }
    /// A pipeline gives its capturers eight seconds to start.
    package var frameTimeout: Double { 10 }
    /// The allocator reserves 16 MB when a thread first uses a pool of its own.
    package var memoryLimit: Int { 60_000_000 }

    private var isSound: Bool { Self.isSound(port) }
    private static func isSound(_ port: Port) -> Bool { port.kinds.isSubset(of: [.rawAudio, .encodedAudio]) }

    /// Backlog is handled by the pipeline's queues, not by the capturer.
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
    ) async throws -> any NodeRun {
        let seen = SeenUnits()
        var bindings = NodeBindings()
        bind(
            &bindings,
            frame: { seen.append(MediaUnit($0)) }, sound: { seen.append(MediaUnit($0)) })
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

    /// The node, its source if it has inputs, its observer, and an end for every other required output.
    private func graph(_ settings: [String: SettingValue]) -> MediaGraph {
        var graph = MediaGraph(nodes: [
            Node(kind.name, name: Self.node, settings: settings), isSound ? .sound("end") : .frames("end"),
        ])
        graph.link(Self.node, port.name, to: "end")
        for other in kind.outputs where other.name != port.name && other.isRequired {
            graph.drop(Self.node, other.name)
        }
        guard !kind.inputs.isEmpty else { return graph }
        graph.nodes.append(.testPattern(Self.source))
        for input in kind.inputs where input.isRequired {
            graph.link(Self.source, Self.isSound(input) ? "audio" : "video", to: Self.node, input.name)
        }
        // A test pattern has to show its video somewhere.
        if kind.inputs.allSatisfy(Self.isSound) { graph.drop(Self.source, "video") }
        return graph
    }
}

extension MediaGraph {
    fileprivate mutating func link(_ from: String, _ output: String, to node: String, _ input: String = "in") {
        links.append(
            Link(from: PortReference(node: from, port: output), to: PortReference(node: node, port: input)))
    }

    /// Ends an output that nothing reads.
    fileprivate mutating func drop(_ node: String, _ output: String) {
        nodes.append(.null("null-\(output)"))
        link(node, output, to: "null-\(output)")
    }
}

/// The output so far, as seen on GStreamer's threads.
private final class SeenUnits: Sendable {
    private struct State {
        var units: [MediaUnit] = []
        var outcome: NodeOutcome?
    }

    private let state = Mutex(State())

    var units: [MediaUnit] { state.withLock { $0.units } }
    var outcome: NodeOutcome? { state.withLock { $0.outcome } }

    func append(_ unit: MediaUnit) {
        state.withLock { $0.units.append(unit) }
    }

    /// Only the first end counts.
    func end(_ outcome: NodeOutcome) {
        state.withLock { $0.outcome = $0.outcome ?? outcome }
    }
}

private final class PipelineRun: NodeRun {
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
                try await pipeline.begin()
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

    var units: [MediaUnit] { seen.units }
    var outcome: NodeOutcome? { seen.outcome }

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

extension MediaUnit {
    fileprivate init(_ frame: VideoFrame) {
        self.init(
            format: .rawVideo(width: frame.width, height: frame.height), time: frame.captureTime, arrival: .now)
    }

    fileprivate init(_ chunk: AudioChunk) {
        self.init(format: .rawAudio, time: chunk.captureTime, arrival: .now)
        duration = chunk.seconds
    }
}

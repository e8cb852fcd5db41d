@testable import MediaGraph
import MediaNodes
import RoomProtocol
import Synchronization
import TestSupport

@testable import RoomClient

/// A machine without devices, whose pipelines do nothing but keep their graph. The camera `impossible` cannot be opened.
final class StubMachine: Sendable {
    static let impossible = "impossible"
    let pipelines = Collected<StubPipeline>()
    /// The streams that the pipelines feed. Nil for none.
    let streams = Mutex<OutgoingStreams?>(nil)
    /// Whether the streams get a frame.
    let delivers = Mutex(true)
    /// Whether the machine has a microphone at present.
    let hasMicrophone = Mutex(true)
    /// Whether the machine can process voices.
    let processesVoice = Mutex<Bool?>(nil)
    private let random: Mutex<Seeded>

    init(_ seed: UInt64 = 1) { random = Mutex(Seeded(seed)) }

    var machine: CaptureMachine {
        CaptureMachine(
            inspect: { request throws(MediaError) in
                await self.takeTime()
                if request.camera == "absent" { throw Self.error }
                let hasAudio = request.hasAudio && self.hasMicrophone.withLock { $0 }
                return .init(hasVideo: request.hasVideo, hasAudio: hasAudio)
            },
            makePipeline: { graph, bindings, _ throws(MediaError) in
                await self.takeTime()
                let pipeline = StubPipeline(graph, bindings, self)
                self.pipelines.append(pipeline)
                return pipeline
            },
            plan: { _, _ in throw Self.error }, processesVoice: { self.processesVoice.withLock { $0 } })
    }

    static let error = MediaError(code: "camera.absent", message: "There is no such camera.")

    /// Lets other tasks run, so that their changes arrive meanwhile.
    func takeTime() async {
        for _ in 0..<random.withLock({ Int.random(in: 0..<4, using: &$0) }) { await Task.yield() }
    }

    static func check(_ graph: MediaGraph) throws(MediaError) {
        if graph.node("source")?.settings["device"] == .text(impossible) { throw error }
    }
}

/// Feeds one stream.
private final class StubInput: StreamInput {
    let stream: OutgoingStream

    init(_ stream: OutgoingStream) {
        self.stream = stream
        stream.begin(self)
        stream.show(self)
    }

    func requestKeyframe() {}
    func limitRate(bitsPerSecond: Int, keepsSize: Bool) {}

    /// Delivers a frame after some time.
    func deliver(_ machine: StubMachine) async {
        await machine.takeTime()
        guard machine.delivers.withLock({ $0 }) else { return }
        stream.take(
            RTPBatch(
                bytes: [UInt8](repeating: 0, count: 20), ends: [20], captureTime: MediaTime(nanoseconds: 1),
                rtpTimestamp: 1, isKeyframe: true), from: self)
    }
}

final class StubPipeline: CapturePipeline {
    private struct State {
        var graph: MediaGraph
        var inputs: [StubInput] = []
        var isRunning = false
        var hasEnded = false
    }

    private let state: Mutex<State>
    private let bindings: NodeBindings
    private let machine: StubMachine

    init(_ graph: MediaGraph, _ bindings: NodeBindings, _ machine: StubMachine) {
        state = Mutex(State(graph: graph))
        (self.bindings, self.machine) = (bindings, machine)
    }

    var graph: MediaGraph { state.withLock { $0.graph } }
    var isRunning: Bool { state.withLock { $0.isRunning } }
    var plan: GraphPlan { GraphPlan(source: graph, nodes: [], links: []) }
    var statistics: MediaStatistics { MediaStatistics() }
    var absences: [String: MediaError] { absences(of: graph) }
    var sourceFeed: FrameFeedControl? { nil }

    private func absences(of graph: MediaGraph) -> [String: MediaError] {
        let name = MediaRequest.microphoneNode
        let isAway = graph.node(name) != nil && !machine.hasMicrophone.withLock { $0 }
        return isAway ? [name: MediaError(code: MediaError.Code.microphoneAbsent, message: "It is away.")] : [:]
    }

    /// Reports an event as a node would.
    func report(_ event: MediaEvent) { bindings.events?(event) }

    /// Ends by itself.
    func fail() {
        let wasRunning = state.withLock { state in
            defer { (state.isRunning, state.hasEnded) = (false, true) }
            return state.isRunning
        }
        if wasRunning { report(.failed(StubMachine.error)) }
    }

    /// Feeds the streams of the graph's outputs, and no others.
    private func feed() {
        guard let streams = machine.streams.withLock({ $0 }) else { return }
        let graph = graph
        let wanted = Set(
            graph.links.filter { $0.to.node == MediaRequest.output }.map { link -> Codec in
                guard link.to.port == "video" else { return .opus }
                return graph.node(MediaRequest.output)?.settings["codec"] == "h264" ? .h264 : .vp8
            })
        let former = state.withLock { $0.inputs }
        for input in former where !wanted.contains(input.stream.codec) { input.stream.pause(input) }
        let kept = former.filter { wanted.contains($0.stream.codec) }
        let new = wanted.subtracting(kept.map(\.stream.codec)).map { StubInput(streams.stream(for: $0)) }
        streams.keep(new.map(\.stream))
        let isRunning = state.withLock { state in
            state.inputs = kept + new
            return state.isRunning
        }
        // It has failed meanwhile.
        guard isRunning else {
            for input in new { input.stream.fail(RoomError(StubMachine.error)) }
            return
        }
        for input in new {
            Task { [weak self, weak input] in
                guard let self, let input else { return }
                await input.deliver(machine)
            }
        }
    }

    func begin() async throws(MediaError) {
        await machine.takeTime()
        try StubMachine.check(graph)
        let hasStarted = state.withLock { state in
            if !state.hasEnded { state.isRunning = true }
            return !state.hasEnded
        }
        if !hasStarted { throw StubMachine.error }
        feed()
    }

    func edit(_ graph: MediaGraph, _ bindings: NodeBindings, needsDevices: Bool) async throws(MediaError) {
        await machine.takeTime()
        try StubMachine.check(graph)
        if needsDevices, let absence = absences(of: graph).values.first { throw absence }
        let isDone = state.withLock { state in
            if state.isRunning { state.graph = graph }
            return state.isRunning
        }
        if !isDone { throw StubMachine.error }
        feed()
    }

    func stop() async {
        await machine.takeTime()
        let inputs = state.withLock { state in
            (state.isRunning, state.hasEnded) = (false, true)
            defer { state.inputs = [] }
            return state.inputs
        }
        for input in inputs { input.stream.pause(input) }
    }
}

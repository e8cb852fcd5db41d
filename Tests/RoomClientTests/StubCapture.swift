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
    private let random: Mutex<Seeded>

    init(_ seed: UInt64 = 1) { random = Mutex(Seeded(seed)) }

    var machine: CaptureMachine {
        CaptureMachine(
            inspect: { request throws(MediaError) in
                await self.takeTime()
                if request.camera == "absent" { throw Self.error }
                return .init(hasVideo: request.hasVideo, hasAudio: request.hasAudio)
            },
            makePipeline: { graph, bindings, _ throws(MediaError) in
                await self.takeTime()
                let pipeline = StubPipeline(graph, bindings, self)
                self.pipelines.append(pipeline)
                return pipeline
            },
            plan: { _, _ in throw Self.error })
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

final class StubPipeline: CapturePipeline {
    private struct State {
        var graph: MediaGraph
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
    var absences: [String: MediaError] { [:] }

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

    func begin() async throws(MediaError) {
        await machine.takeTime()
        try StubMachine.check(graph)
        let hasStarted = state.withLock { state in
            if !state.hasEnded { state.isRunning = true }
            return !state.hasEnded
        }
        if !hasStarted { throw StubMachine.error }
    }

    func edit(_ graph: MediaGraph, _ bindings: NodeBindings, needsDevices: Bool) async throws(MediaError) {
        await machine.takeTime()
        try StubMachine.check(graph)
        let isDone = state.withLock { state in
            if state.isRunning { state.graph = graph }
            return state.isRunning
        }
        if !isDone { throw StubMachine.error }
    }

    func stop() async {
        await machine.takeTime()
        state.withLock { ($0.isRunning, $0.hasEnded) = (false, true) }
    }
}

import GStreamerKit
import MediaGraph
import Synchronization

/// Turns errors of elements into errors of nodes.
final class Explainer: Sendable {
    private struct State {
        weak var graph: RunningGraph?
        var missing: String?
    }

    private let state = Mutex(State())
    private let reporter: Reporter

    init(_ reporter: Reporter) {
        self.reporter = reporter
    }

    func set(_ graph: RunningGraph) {
        state.withLock { $0.graph = graph }
    }

    /// Remembers what could not be decoded, for the error that follows.
    func note(missing plugin: String) {
        state.withLock { $0.missing = plugin }
    }

    func report(_ failure: PipelineFailure) {
        let (graph, missing) = state.withLock { ($0.graph, $0.missing) }
        let owner = graph?.owner(of: failure.path)
        let running = owner.flatMap { graph?.runningNode($0) }
        if let explained = running?.explain(failure, missing: missing) { return reporter.fail(explained, owner) }
        let name = owner.map { "\"\($0)\"" } ?? failure.path.first ?? "An element"
        reporter.fail(
            MediaError(
                code: MediaError.Code.elementFailed, message: "\(name) failed: \(failure.message)",
                cause: failure.detail), owner)
    }
}

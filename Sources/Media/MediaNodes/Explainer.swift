import GStreamerKit
import MediaGraph
import Synchronization

/// Turns errors of elements into errors of nodes.
final class Explainer: Sendable {
    private struct State {
        var owners: [String: String] = [:]
        var nodes: [any RunningNode] = []
        var missing: String?
    }

    private let state = Mutex(State())
    private let reporter: Reporter

    init(_ reporter: Reporter) {
        self.reporter = reporter
    }

    func set(owners: [String: String], nodes: [any RunningNode]) {
        state.withLock {
            $0.owners = owners
            $0.nodes = nodes
        }
    }

    /// Remembers what could not be decoded, for the error that follows.
    func note(missing plugin: String) {
        state.withLock { $0.missing = plugin }
    }

    func report(_ failure: PipelineFailure) {
        let (owner, missing) = state.withLock { state in
            let owners = state.owners
            let name = failure.path.lazy.compactMap { owners[$0] }.first
            return (state.nodes.first { $0.name == name }, state.missing)
        }
        if let explained = owner?.explain(failure, missing: missing) { return reporter.fail(explained) }
        let name = owner.map { "\"\($0.name)\"" } ?? failure.path.first ?? "An element"
        reporter.fail(
            MediaError(
                code: MediaError.Code.elementFailed, message: "\(name) failed: \(failure.message)",
                cause: failure.detail))
    }
}

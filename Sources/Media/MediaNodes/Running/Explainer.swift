import GStreamerKit
import MediaGraph
import Synchronization

/// Turns errors of elements into errors of nodes.
final class Explainer: Sendable {
    private struct State {
        weak var graph: RunningGraph?
        weak var editor: GraphEditor?
        var missing: String?
    }

    private let state = Mutex(State())
    private let reporter: Reporter

    init(_ reporter: Reporter) {
        self.reporter = reporter
    }

    func set(_ graph: RunningGraph, _ editor: GraphEditor) {
        state.withLock {
            $0.graph = graph
            $0.editor = editor
        }
    }

    /// What elements say that nobody has to answer.
    func hear(_ note: BusNote) {
        let graph = state.withLock { $0.graph }
        switch note {
        case .warning(let remark):
            guard case .live(let node)? = graph?.standing(ofElementIn: remark.path)?.standing else { return }
            reporter.warn(node, remark.message)
        case .element(let message):
            graph?.standing(ofElementIn: message.path)?.running?.hear(message)
        case .information, .qualityOfService, .stateChanged, .sinkEnded: break
        }
    }

    /// Remembers what could not be decoded, for the error that follows.
    func note(missing plugin: String) {
        state.withLock { $0.missing = plugin }
    }

    func report(_ failure: PipelineFailure) {
        let (graph, editor, missing) = state.withLock { ($0.graph, $0.editor, $0.missing) }
        let speaker = graph?.standing(ofElementIn: failure.path)
        switch speaker?.standing {
        case .leaving: return
        case .staged(let node): editor?.stagedFailed(explained(failure, node, speaker?.running, missing))
        case .live(let node): reporter.fail(explained(failure, node, speaker?.running, missing), node)
        case nil: reporter.fail(explained(failure, nil, nil, missing))
        }
    }

    private func explained(
        _ failure: PipelineFailure, _ node: String?, _ running: (any RunningNode)?, _ missing: String?
    ) -> MediaError {
        if let explained = running?.explain(failure, missing: missing) { return explained }
        let name = node.map { "\"\($0)\"" } ?? failure.path.first ?? "An element"
        return MediaError(
            code: MediaError.Code.elementFailed, message: "\(name) failed: \(failure.message)", cause: failure.detail,
            node: node)
    }
}

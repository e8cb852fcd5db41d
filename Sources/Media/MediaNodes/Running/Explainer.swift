import GStreamerKit
import MediaGraph
import Synchronization

/// Turns errors of elements into errors of nodes.
final class Explainer: Sendable {
    private struct State {
        weak var graph: RunningGraph?
        weak var editor: GraphEditor?
        var missing: String?
        /// What failed before it was known whose elements they are; nil once that is. Some open their devices as soon as
        /// they are linked.
        var early: [PipelineFailure]? = []
    }

    private let state = Mutex(State())
    private let reporter: Reporter

    init(_ reporter: Reporter) {
        self.reporter = reporter
    }

    func set(_ graph: RunningGraph, _ editor: GraphEditor) {
        let early = state.withLock { state in
            defer { state.early = nil }
            state.graph = graph
            state.editor = editor
            return state.early ?? []
        }
        for failure in early { report(failure) }
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
        let isEarly = state.withLock { state in
            state.early?.append(failure)
            return state.early != nil
        }
        if isEarly { return }
        let (graph, editor, missing) = state.withLock { ($0.graph, $0.editor, $0.missing) }
        let speaker = graph?.standing(ofElementIn: failure.path)
        switch speaker?.standing {
        case .leaving: speaker?.running?.failedWhileLeaving(failure)
        case .staged(let node): editor?.stagedFailed(explained(failure, node, speaker?.running, missing))
        case .live(let node): reporter.fail(explained(failure, node, speaker?.running, missing), node)
        case nil: reporter.fail(explained(failure, nil, nil, missing))
        }
    }

    private func explained(
        _ failure: PipelineFailure, _ node: String?, _ running: (any RunningNode)?, _ missing: String?
    ) -> MediaError {
        if let explained = running?.explain(failure, missing: missing) { return explained }
        guard let node else {
            return MediaError(
                code: MediaError.Code.elementFailed,
                message: "\(failure.path.first ?? "An element") failed: \(failure.message)", cause: failure.detail)
        }
        return MediaError(
            code: MediaError.Code.elementFailed,
            message: "\"\(node)\" failed\(place(of: failure, in: node)): \(failure.message.trimmedSentence); "
                + remedy(failure, missing),
            cause: failure.detail, node: node)
    }

    /// The element that failed and what it was given, as far as that is known.
    private func place(of failure: PipelineFailure, in node: String) -> String {
        guard let graph = state.withLock({ $0.graph }), let plan = graph.plan.node(node) else { return "" }
        let element = failure.path.lazy.compactMap { name in
            name.lastIndex(of: ".").flatMap { plan.element(String(name[name.index(after: $0)...])) }
        }.first
        let given = graph.plan.links(into: node).map { "\($0.format)" }
        var known: [String] = []
        if let element { known.append("in its element \(element.factory)") }
        if !given.isEmpty { known.append("given \(given.joined(separator: " and "))") }
        return known.isEmpty ? "" : " (\(known.joined(separator: ", ")))"
    }

    private func remedy(_ failure: PipelineFailure, _ missing: String?) -> String {
        if let missing { return "install what decodes it (\(missing))." }
        if failure.detail.contains("not-negotiated") || failure.message.contains("negotiat") {
            return "put a node before it that makes a format it takes; \"connectlive plan\" shows what each gives."
        }
        switch failure.kind {
        case .noSuchCodec: return "install a decoder for it, or choose another format."
        case .notFound: return "check that what it names is there."
        case .busy, .cannotOpen: return "check that nothing else uses what it opens, and that you may."
        case .noSpace: return "make room on the disk."
        case .cannotWrite: return "check that what it writes to is there, and that you may."
        case .windowClosed, .other: return "see the cause, or leave the node out."
        }
    }
}

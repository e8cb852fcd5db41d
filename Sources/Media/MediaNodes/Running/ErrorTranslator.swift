import GStreamerKit
import MediaGraph
import Synchronization

/// Turns errors of elements into errors of nodes.
final class ErrorTranslator: Sendable {
    private struct State {
        weak var editor: GraphEditor?
        var missing: String?
        /// Failures before the owner of the elements was known, nil once it is. Some elements open their devices as
        /// soon as they are linked.
        var early: [PipelineFailure]? = []
    }

    private let state = Mutex(State())
    private let reporter: Reporter

    init(_ reporter: Reporter) {
        self.reporter = reporter
    }

    func set(_ editor: GraphEditor) {
        let early = state.withLock { state in
            defer { state.early = nil }
            state.editor = editor
            return state.early ?? []
        }
        for failure in early { report(failure) }
    }

    /// Reports an element's warning as that of its node.
    func warn(_ path: [String], _ message: String) {
        let editor = state.withLock { $0.editor }
        guard let owner = editor?.graph.owner(ofElementIn: path), owner.stage == .live else { return }
        reporter.warn(owner.instance.name, message)
    }

    /// Remembers the format that could not be decoded, for the error that follows.
    func note(missing plugin: String) {
        state.withLock { $0.missing = plugin }
    }

    func report(_ failure: PipelineFailure) {
        let isEarly = state.withLock { state in
            state.early?.append(failure)
            return state.early != nil
        }
        if isEarly { return }
        let (editor, missing) = state.withLock { ($0.editor, $0.missing) }
        guard let editor, let (node, stage) = editor.graph.owner(ofElementIn: failure.path) else {
            return reporter.fail(
                MediaError(
                    code: MediaError.Code.elementFailed,
                    message: "\(failure.path.first ?? "An element") failed: \(failure.message)",
                    cause: failure.detail))
        }
        let plan = editor.graph.plan
        func explained() -> MediaError {
            if failure.kind == .windowClosed { return WindowNode.closed }
            return node.running?.explain(failure, missing: missing)
                ?? MediaError(
                    code: MediaError.Code.elementFailed,
                    message: "\"\(node.name)\" failed\(place(of: failure, in: node.name, plan)): "
                        + "\(failure.message.trimmedSentence). \(remedy(failure, missing))",
                    cause: failure.detail, node: node.name)
        }
        switch stage {
        case .released, .leaving: node.running?.failedWhileLeaving(failure)
        case .staged, .live: node.reporter.fail(explained(), node.name)
        }
    }

    /// The element that failed and its input, as far as they are known.
    private func place(of failure: PipelineFailure, in node: String, _ whole: GraphPlan) -> String {
        guard let plan = whole.node(node) else { return "" }
        let element = failure.path.lazy.compactMap { name in
            name.lastIndex(of: ".").flatMap { plan.element(String(name[name.index(after: $0)...])) }
        }.first
        let given = whole.links(into: node).map { "\($0.format)" }
        var known: [String] = []
        if let element { known.append("in its element \(element.factory)") }
        if !given.isEmpty { known.append("with \(given.joined(separator: " and "))") }
        return known.isEmpty ? "" : " (\(known.joined(separator: ", ")))"
    }

    private func remedy(_ failure: PipelineFailure, _ missing: String?) -> String {
        if let missing { return "Install its decoder (\(missing))." }
        if failure.detail.contains("not-negotiated") || failure.message.contains("negotiat") {
            return "Put a node upstream that converts to a format it accepts; \"connectlive plan\" shows all formats."
        }
        switch failure.kind {
        case .noSuchCodec: return "Install a decoder for it, or choose another format."
        case .notFound: return "Check that the file or device in its settings exists."
        case .busy, .cannotOpen: return "Check that no other program uses its file or device, and that you may open it."
        case .noSpace: return "Free space on the disk."
        case .cannotWrite: return "Check that its output exists, and that you may write to it."
        case .windowClosed, .other: return "Read the cause, or leave the node out."
        }
    }
}

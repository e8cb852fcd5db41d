import Dispatch
import MediaGraph

/// Tells the nodes that show media outside of this process which of their inputs carry stand-ins, because the device of
/// a source that feeds them is away. Follows the graph's edits.
final class AbsenceWatch: Sendable {
    private let graph: RunningGraph
    /// One round at a time, so that the last one that a node gets is the newest.
    private let queue = DispatchQueue(label: "media.absences")

    init(_ graph: RunningGraph) {
        self.graph = graph
        graph.onChange(for: self) { [weak self] in self?.check() }
        graph.context.reporter.onDeviceEvent { [weak self] in self?.check() }
    }

    private func check() { queue.async { [weak self] in self?.inform() } }

    private func inform() {
        let plan = graph.plan
        for node in graph.nodes {
            guard let publishing = node.publishing else { continue }
            for input in node.plan.inputs.keys.sorted() {
                let sources = plan.sources(feeding: PortReference(node: node.name, port: input))
                publishing.sourceChanged(
                    of: input, absence: sources.lazy.compactMap { self.graph.node($0)?.running?.absence }.first)
            }
        }
    }
}

extension MediaPipeline {
    /// Why sources show stand-ins for the media of their devices, by the name of the node.
    package var absences: [String: MediaError] {
        graph.nodes.reduce(into: [:]) { $0[$1.name] = $1.running?.absence }
    }
}

import Dispatch
import MediaGraph

/// Tells the nodes that show media outside of this process what feeds their inputs: whether a source shows stand-ins because
/// its device is away, and which encoder makes the frames. Follows the graph's edits.
final class FeedWatch: Sendable {
    private let graph: RunningGraph
    /// One round at a time, so that the last one that a node gets is the newest.
    private let queue = DispatchQueue(label: "media.feeds")

    init(_ graph: RunningGraph) {
        self.graph = graph
        graph.onChange(for: self) { [weak self] in self?.check() }
        // An observer of the event finds the states of the streams changed.
        graph.context.reporter.onDeviceEvent { [weak self] in
            guard let self else { return }
            queue.sync { self.inform() }
        }
        check()
    }

    private func check() { queue.async { [weak self] in self?.inform() } }

    private func inform() {
        let plan = graph.plan
        for node in graph.nodes {
            guard let publishing = node.publishing else { continue }
            for input in node.plan.inputs.keys.sorted() {
                publishing.feedChanged(of: input, feed(of: PortReference(node: node.name, port: input), in: plan))
            }
        }
    }

    private func feed(of input: PortReference, in plan: GraphPlan) -> InputFeed {
        var feed = InputFeed()
        feed.absence = plan.sources(feeding: input).firstNonNil { graph.node($0)?.running?.absence }
        feed.format = plan.links.first { $0.link.to == input }?.format
        switch plan.encoder(feeding: input).flatMap({ graph.node($0)?.running }) {
        case let encoder as VideoEncoderNode: feed.encoder = { [weak encoder] in encoder?.counts }
        case let encoder as AudioEncoderNode: feed.audioEncoder = { [weak encoder] in encoder?.counts }
        default: break
        }
        return feed
    }
}

extension MediaPipeline {
    /// Why sources show stand-ins for the media of their devices, by the name of the node.
    package var absences: [String: MediaError] {
        graph.nodes.reduce(into: [:]) { $0[$1.name] = $1.running?.absence }
    }
}

internal import GStreamerKit
public import MediaGraph
import Synchronization

extension MediaPipeline {
    /// Starts statistics of all nodes. They are collected while the watch lives, and cost nothing otherwise.
    public func watch() -> NodeWatch { NodeWatch(graph) }
}

/// Statistics of all nodes of a running graph, including nodes that edits add. Callable on any thread.
public final class NodeWatch: Sendable {
    private let graph: RunningGraph
    /// Probes by the member's prefix, so a replaced node gets new counts.
    private let probes = Mutex<[String: NodeProbe]>([:])
    /// The statistics of a pipeline that has stopped.
    private let last = Mutex<[NodeStatistics]?>(nil)

    init(_ graph: RunningGraph) {
        self.graph = graph
        graph.onChange(for: self) { [weak self] in
            self?.follow()
        } farewell: { [weak self] in
            self?.end()
        }
        follow()
    }

    deinit {
        graph.removeObserver(of: self)
    }

    /// Returns the statistics since the watch began, sources first.
    public func sample() -> [NodeStatistics] {
        if let last = last.withLock({ $0 }) { return last }
        return graph.nodes.compactMap { node in
            probes.withLock { $0[node.prefix] }?.statistics
        }
    }

    private func end() {
        let statistics = sample()
        last.withLock { $0 = statistics }
        let gone = probes.withLock { probes in
            defer { probes = [:] }
            return probes
        }
        withExtendedLifetime(gone) {}
    }

    private func follow() {
        probes.withLock { probes in
            // Under the lock, because two changes may be reported at a time.
            let nodes = graph.nodes
            let prefixes = Set(nodes.map(\.prefix))
            probes = probes.filter { prefixes.contains($0.key) }
            for node in nodes {
                let probe = probes[node.prefix] ?? NodeProbe(node)
                probe.follow(graph.connections(into: node.name))
                probes[node.prefix] = probe
            }
        }
    }
}

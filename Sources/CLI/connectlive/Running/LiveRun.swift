internal import Foundation
internal import GraphFile
internal import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import Synchronization

/// The pipeline of `connectlive run`, for the command itself and for control clients.
final class LiveRun: Sendable {
    private struct Watching {
        var count = 0
        var watch: NodeWatch?
    }

    let pipeline: MediaPipeline
    private let file: String
    private let description: String?
    private let watching = Mutex(Watching())
    private let started = Mutex<ContinuousClock.Instant?>(nil)

    /// Creates the elements without starting them. `events` is called on any thread.
    init(
        _ plan: GraphPlan, file: String, description: String?, events: @escaping @Sendable (MediaEvent) -> Void
    ) async throws(MediaError) {
        self.file = file
        self.description = description
        var bindings = NodeBindings()
        bindings.events = events
        pipeline = try await MediaPipeline(plan, bindings: bindings, registry: KnownNodes.registry)
    }

    /// Returns when every source has delivered its first frame.
    func start() async throws(MediaError) {
        started.withLock { $0 = .now }
        try await pipeline.begin()
    }

    var graph: MediaGraph { plan.source }
    var plan: GraphPlan { pipeline.plan }

    var status: PipelineStatus {
        PipelineStatus(
            pid: Int(getpid()), file: file, description: description, state: pipeline.state.rawValue, seconds: seconds)
    }

    private var seconds: Double { started.withLock { $0 }.map { (.now - $0) / .seconds(1) } ?? 0 }

    /// Empty while no client watches.
    var statistics: PipelineStatistics {
        let watch = watching.withLock { $0.watch }
        return PipelineStatistics(seconds: seconds, nodes: watch?.sample() ?? [])
    }

    /// Statistics have a cost, so they are collected only while a client watches.
    func setWatched(_ isWatched: Bool) {
        watching.withLock { watching in
            watching.count += isWatched ? 1 : -1
            if watching.count == 0 {
                watching.watch = nil
            } else if watching.watch == nil {
                watching.watch = pipeline.watch()
            }
        }
    }

    func apply(_ graph: MediaGraph, deadline: Double?) async throws(MediaError) -> AppliedEdit {
        // A client that read the graph from here did not receive its secrets.
        let whole = graph.withSecrets(of: self.graph, KnownNodes.registry)
        let former = plan.sharedCameras + plan.unknownFailovers
        let change = try await pipeline.apply(
            whole, bindings: NodeBindings(), within: deadline ?? Self.defaultDeadline)
        let doubts = change.result.sharedCameras + change.result.unknownFailovers
        let warnings = change.absences(in: pipeline.statistics) + doubts.filter { !former.contains($0) }
        return AppliedEdit(changes: change.words, warnings: warnings.isEmpty ? nil : warnings)
    }

    /// Seconds that new nodes have to deliver their first frame.
    private static let defaultDeadline = 2.0

    func set(
        _ setting: String, of node: String, to value: SettingValue
    ) async throws(MediaError) -> AppliedSetting {
        let contract = self.contract(of: setting, node)
        try await pipeline.set(node, setting, to: read(value, contract))
        guard contract?.isChangeUnsaid == true else { return AppliedSetting() }
        return AppliedSetting(
            note: "Set \(node).\(setting). The element does not document live changes to this property; check that it "
                + "took effect.")
    }

    /// Throws what `set` would throw for these arguments, and changes nothing.
    func check(_ setting: String, of node: String, to value: SettingValue) throws(MediaError) {
        try pipeline.check(node, setting, to: read(value, contract(of: setting, node)))
    }

    private func contract(of setting: String, _ node: String) -> SettingContract? {
        plan.node(node).flatMap { KnownNodes.registry.kind(named: $0.node.kind) }?.setting(setting)
    }

    /// Reads text as a graph file reads it.
    private func read(_ value: SettingValue, _ contract: SettingContract?) -> SettingValue {
        value.text.flatMap { text in contract?.value(written: text) } ?? value
    }
}

extension GraphChange {
    /// One line for each change.
    var words: [String] {
        let arriving = Set(added.map(\.name))
        let replaced = Set(removed).intersection(arriving)
        // Links of added and removed nodes are implied.
        let moving = arriving.union(removed)
        func isNews(_ link: Link) -> Bool { !moving.contains(link.from.node) && !moving.contains(link.to.node) }
        return removed.filter { !replaced.contains($0) }.map { "removed \($0)" }
            + added.map { "\(replaced.contains($0.name) ? "replaced" : "added") \($0.name) (\($0.node.kind))" }
            + settings.map { "set \($0.node).\($0.setting) to \(shown($0).map { "\($0)" } ?? "its default")" }
            + removedLinks.filter(isNews).map { "unlinked \($0.from) from \($0.to)" }
            + addedLinks.map(\.link).filter(isNews).map { "linked \($0.from) to \($0.to)" }
    }

    /// One sentence for each new or replaced source whose device is not there, also because its name is misspelt, or
    /// delivers nothing. The graph waits for it.
    func absences(in statistics: MediaStatistics) -> [String] {
        added.compactMap { node in
            let cause = node.device?.absence.map { "\($0)" } ?? statistics.sources[node.name]?.cause
            return cause.map { "\(node.name) waits for its \(DeviceWord.of(kind: node.node.kind)): \($0)" }
        }
    }

    private func shown(_ change: SettingChange) -> SettingValue? {
        let graph = MediaGraph(nodes: result.source.nodes.filter { $0.name == change.node })
            .withoutSecrets(KnownNodes.registry)
        return change.value == nil ? nil : graph.nodes.first?.settings[change.setting] ?? change.value
    }
}

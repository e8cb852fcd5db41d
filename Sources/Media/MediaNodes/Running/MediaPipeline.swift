import Dispatch
internal import GStreamerKit
public import MediaGraph
import Synchronization

/// Runs a graph.
///
/// A pipeline is created, started and stopped once. Calls may come from any thread. Blocking work, including planning,
/// runs on the pipeline's own queues and never on Swift's pool.
public final class MediaPipeline: Sendable {
    /// The state of a pipeline.
    public enum State: String, Sendable, Hashable, Codable {
        /// Its elements exist. Nothing runs.
        case prepared
        case running
        case paused
        /// All sources have ended.
        case ended
        case failed
        case stopped
    }

    /// The name under which the start waits until all devices and files are open, which may take indefinitely long.
    private static let opening = ""

    /// Timers for work that may block the control queue.
    private let timeouts = DispatchQueue(label: "media.limits")
    private let startTimeout = Mutex<Timeout?>(nil)
    /// The node that checks its files and claims them, before anything plays.
    private let preparing = Mutex<String?>(nil)
    private let editor: GraphEditor
    /// Prepared, running or stopped.
    private let phase = Mutex(State.prepared)
    private let isPaused = AtomicBool()
    /// The callers of `pause` that wait for the start; nil unless it is in progress.
    private let awaitingStart = Mutex<[@Sendable () -> Void]?>(nil)

    /// Plans the graph on this machine and creates its elements. Nothing runs yet.
    ///
    /// - Throws: `graph.invalid` with all problems of the graph; `element.missing` with the Debian package of a
    ///   GStreamer element that is not installed; or the error of a node's device, such as `camera.absent`.
    public convenience init(
        _ graph: MediaGraph, bindings: NodeBindings = NodeBindings(), registry: NodeRegistry = .builtIn
    ) async throws(MediaError) {
        try await self.init(graph, bindings: bindings, registry: registry, limits: Limits())
    }

    /// Tests shorten the limits, and step the clock.
    convenience init(
        _ graph: MediaGraph, bindings: NodeBindings = NodeBindings(), registry: NodeRegistry = .builtIn,
        limits: Limits, clock: PipelineClock = .monotonic
    ) async throws(MediaError) {
        self.init(
            try await offPool { () throws(MediaError) in
                let plan = try Planner(registry, SystemEnvironment()).plan(graph, bound: bindings.names)
                return try GraphEditor(plan, bindings, registry, limits, clock)
            })
    }

    /// Creates the elements of a plan. Nothing runs yet. Throws like `init(_:bindings:registry:)`.
    public convenience init(
        _ plan: GraphPlan, bindings: NodeBindings = NodeBindings(), registry: NodeRegistry = .builtIn
    ) async throws(MediaError) {
        self.init(
            try await offPool { () throws(MediaError) in try GraphEditor(plan, bindings, registry, Limits(), .monotonic)
            })
    }

    /// Plans a graph on this machine, on a queue of its own. Cameras, files and network cameras may take seconds to
    /// respond.
    ///
    /// - Parameter bound: the nodes for which the application has functions; nil does not check them.
    /// - Throws: the errors of `Planner.plan`.
    public static func plan(
        _ graph: MediaGraph, bound: BoundNames? = nil, registry: NodeRegistry = .builtIn,
        environment: SystemEnvironment = SystemEnvironment()
    ) async throws(MediaError) -> GraphPlan {
        try await offPool { () throws(MediaError) in try Planner(registry, environment).plan(graph, bound: bound) }
    }

    private init(_ editor: GraphEditor) {
        self.editor = editor
    }

    var graph: RunningGraph { editor.graph }
    private var reporter: Reporter { graph.context.reporter }
    private var control: DispatchQueue { graph.context.control }
    private var limits: Limits { editor.limits }

    /// The running plan: that of the initializer, with all edits since.
    public var plan: GraphPlan { graph.plan }

    /// All events from now on, for one reader. Ends when the pipeline has stopped, or has failed to start. A reader that
    /// leaves 1000 events unread loses the oldest.
    public var events: AsyncStream<MediaEvent> { reporter.listen() }

    public var state: State {
        let phase = phase.withLock { $0 }
        guard phase == .running else { return phase }
        if reporter.hasFailed { return .failed }
        if reporter.hasEnded { return .ended }
        return isPaused.value ? .paused : .running
    }

    deinit {
        let isRunning = phase.withLock { phase in
            defer { phase = .stopped }
            return phase == .running
        }
        reporter.close()
        guard isRunning else { return }
        // Joining streaming threads may block, and this may be one of them.
        control.async { [graph] in graph.halt() }
    }

    /// Starts the pipeline. Returns when every capturer has delivered its first frame.
    ///
    /// - Throws: the reason why a node cannot run, such as `file.not-found`, `file.no-video` or `camera.busy`. The
    ///   pipeline is then stopped. A second call throws `pipeline.stopped`.
    public func start() async throws(MediaError) {
        let isFirst = phase.withLock { phase in
            guard phase == .prepared else { return false }
            phase = .running
            awaitingStart.withLock { $0 = [] }
            return true
        }
        guard isFirst else {
            throw MediaError(
                code: MediaError.Code.pipelineStopped, message: "A media pipeline runs once. Create another one.")
        }
        let failure = await withCheckedContinuation { (continuation: CheckedContinuation<MediaError?, Never>) in
            control.async { self.begin { continuation.resume(returning: $0) } }
        }
        startTimeout.withLock { $0 = nil }
        defer { startSettled() }
        if let failure {
            await stop()
            throw failure
        }
    }

    private func startSettled() {
        let waiting = awaitingStart.withLock { waiting in
            defer { waiting = nil }
            return waiting ?? []
        }
        for body in waiting { body() }
    }

    /// The number of pauses that wait until the pipeline has started.
    var pausesAwaitingStart: Int { awaitingStart.withLock { $0?.count ?? 0 } }

    private var isStarting: Bool { phase.withLock { $0 == .running } && !reporter.hasFailed }

    private func begin(_ done: @escaping @Sendable (MediaError?) -> Void) {
        guard phase.withLock({ $0 == .running }) else { return done(Reporter.stopped) }
        reporter.await(Self.opening)
        armStartTimeout()
        reporter.whenSettled(done)
        for node in graph.nodes {
            // A start that failed or was stopped must not open the files of the other nodes.
            guard isStarting else { return }
            preparing.withLock { $0 = node.name }
            do throws(MediaError) {
                try node.running?.prepare()
            } catch {
                node.reporter.fail(error, node.name)
            }
        }
        preparing.withLock { $0 = nil }
        // An optional node that cannot open its file must not write it.
        editor.finishRemovals()
        guard isStarting else { return }
        for node in graph.nodes {
            node.publishing?.appear { [reporter = node.reporter] error in
                if let error { reporter.fail(error, node.name) } else { reporter.isReady(node.name) }
            }
        }
        play()
        reporter.isReady(Self.opening)
    }

    /// Starts all elements. If those of an optional part refuse, it is removed, and the others start without it.
    private func play() {
        while isStarting {
            let count = graph.nodes.count
            if graph.context.pipeline.play() { return }
            editor.finishRemovals()
            guard graph.nodes.count == count else { continue }
            return reporter.fail(
                MediaError(
                    code: MediaError.Code.elementFailed, message: "The media pipeline did not start."))
        }
    }

    /// On a queue of its own, because a driver that does not return blocks the control queue.
    private func armStartTimeout() {
        let timeout = Timeout(at: .now() + limits.start, on: timeouts) { [weak self] _ in
            guard let self else { return }
            let awaited = reporter.awaited
            if awaited.contains(Self.opening) {
                reporter.fail(stuck(preparing.withLock { $0 } ?? graph.nodeOpening?.name))
                // A stop must not wait either.
                reporter.close()
                return
            }
            // An optional node among them does not end the start, so that the others are still awaited.
            for late in awaited.sorted() where !reporter.hasFailed {
                reporter.fail(
                    graph.node(late)?.running?.stalled
                        ?? MediaError(
                            code: MediaError.Code.pipelineStalled,
                            message:
                                "\"\(late)\" delivered no media within \(limits.start.short) s. Check that the device "
                                + "or file can be read."),
                    late)
            }
        }
        startTimeout.withLock { $0 = timeout }
    }

    private func stuck(_ node: String?) -> MediaError {
        let name = node.map { "\"\($0)\"" } ?? "A node"
        return MediaError(
            code: MediaError.Code.pipelineStalled,
            message: "\(name) could not be opened within \(limits.start.short) s, because its driver or file "
                + "system is not responding. Plug the device in again, or check the path.",
            node: node)
    }

    /// Stops the pipeline: frames that are being encoded are still passed on, then all threads end.
    ///
    /// May be called repeatedly. After it returns, no function of the bindings is called. If a driver or file system
    /// blocks a node beyond the timeout, the rest of that node is released when it responds.
    public func stop() async {
        let former = phase.withLock { phase in
            defer { phase = .stopped }
            return phase
        }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            reporter.whenClosed { continuation.resume() }
            let timeout = Timeout(at: .now() + limits.stop, on: timeouts) { [self] _ in
                if reporter.isOpen { abandon() }
                reporter.close()
            }
            let hasHalted = AtomicBool()
            // A second caller waits here until the first has stopped all nodes. A running edit ends first.
            editor.end(stuck: {
                self.control.async {
                    if former == .running, !hasHalted.exchange(true) { self.graph.haltEach() }
                    self.reporter.close()
                }
            }) {
                self.control.async {
                    if hasHalted.value {
                        self.graph.context.pipeline.stop()
                    } else if former == .running {
                        hasHalted.raise()
                        self.graph.halt()
                    } else if former == .prepared {
                        // A node may claim a file from its creation on.
                        for node in self.graph.runningNodes { node.stopped() }
                    }
                    timeout.cancel()
                    self.reporter.close()
                }
            }
        }
    }

    /// Ends all nodes that a blocked driver or file system does not prevent from ending, and reports the others.
    private func abandon() {
        let names = graph.closeEach(waiting: 0.5).map { "\"\($0)\"" }
        guard !names.isEmpty else { return }
        reporter.warn(
            nil,
            "\(names.joined(separator: ", ")) could not be closed within \(limits.stop.short) s, because a driver or "
                + "file system is not responding. The rest of the pipeline is released when it responds.")
    }

    /// Pauses the pipeline: cameras deliver nothing, files keep their position, recordings get no gap. Waits for a start
    /// in progress. Does nothing unless the pipeline runs.
    public func pause() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isWaiting = awaitingStart.withLock { waiting in
                waiting?.append { continuation.resume() }
                return waiting != nil
            }
            if !isWaiting { continuation.resume() }
        }
        await onControl {
            if self.state == .running, !self.isPaused.exchange(true) { self.graph.context.pipeline.pause() }
        }
    }

    /// Continues after a pause.
    public func resume() async {
        await onControl { if self.isPaused.exchange(false) { self.graph.context.pipeline.resume() } }
    }

    private func onControl(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            control.async {
                body()
                continuation.resume()
            }
        }
    }

    /// Requests a keyframe from a video encoder. Throws `graph.invalid` if no video encoder has this name.
    public func requestKeyframe(_ node: String) throws(MediaError) {
        if let encoder = find(VideoEncoderNode.self, node) { return encoder.requestKeyframe() }
        guard plan.node(node) == nil else {
            throw Self.invalid("\"\(node)\" is not a video encoder, and only video encoders make keyframes.", node)
        }
        throw unknown(node)
    }

    /// The input of an RTP input node; nil if there is no such node with this name.
    public func rtpInput(_ node: String) -> RTPInput? {
        find(RTPInputNode.self, node).map(RTPInput.init)
    }

    /// Statistics since the start.
    public var statistics: MediaStatistics {
        var statistics = MediaStatistics()
        for node in graph.nodes { node.running?.report(into: &statistics, as: node.name) }
        return statistics
    }

    /// Results that the graph requested but did not get, although it continued: a recording without its audio, for
    /// example. Each was reported as a warning. The list is complete after `stop()`.
    public var shortfalls: [MediaError] { reporter.shortfalls }

    // MARK: Changes while it runs

    /// Replaces the running graph by another one, as one transaction. New nodes are built beside the old ones. When
    /// they have delivered their first frame, they replace the old ones, at a keyframe if media is encoded. Nodes that
    /// stay lose no frame.
    ///
    /// - Parameters:
    ///   - bindings: functions for new nodes. Existing bindings stay; those of removed nodes are released.
    ///   - seconds: the timeout for the new nodes' first frames.
    /// - Returns: the changes.
    /// - Throws: the reason why the graph was not replaced. It then runs unchanged. `graph.invalid`, an error of a new
    ///   node's device, or `graph.edit-failed` if a new node delivered no frame in time. Also the reason why a node
    ///   refused a new value of a live setting: only this setting is then unchanged.
    @discardableResult
    public func apply(
        _ graph: MediaGraph, bindings: NodeBindings = NodeBindings(), within seconds: Double = 2
    ) async throws(MediaError) -> GraphChange {
        try await apply(graph, bindings: bindings, within: seconds, needsDevices: false)
    }

    /// With `needsDevices`, also throws if the device of a new source is away. Otherwise a stand-in is its first frame.
    @discardableResult
    package func apply(
        _ graph: MediaGraph, bindings: NodeBindings, within seconds: Double, needsDevices: Bool
    ) async throws(MediaError) -> GraphChange {
        guard state == .running else {
            throw MediaError(
                code: MediaError.Code.pipelineStopped,
                message: "The graph cannot be changed while it is \(state.rawValue), only while it runs.")
        }
        let runs = self.graph
        return try await editor.edit(seconds: seconds, bringing: bindings, needsDevices: needsDevices) {
            running throws(MediaError) in
            let bound = runs.context.bound.bindings.only(for: graph, runs.registry).names
            return try Planner(runs.registry, SystemEnvironment()).plan(graph, bound: bound, running: running)
        }
    }

    /// Changes the bitrate of an encoder. Throws like `set` for its setting `bitrate`.
    public func setBitrate(_ bitrate: Bitrate, _ node: String) async throws(MediaError) {
        try await set(node, "bitrate", to: .integer(bitrate.bitsPerSecond))
    }

    /// Changes a live setting of a node.
    ///
    /// - Throws: `graph.invalid` for an unknown node or setting or an invalid value; `graph.setting-fixed` for a
    ///   setting that is not live. `apply` replaces the node instead.
    public func set(_ node: String, _ setting: String, to value: SettingValue) async throws(MediaError) {
        try check(node, setting, to: value)
        try await editor.edit(seconds: 2) { running throws(MediaError) in running.setting(node, setting, to: value) }
    }

    /// Throws the error that `set` would throw, without changing the setting.
    package func check(_ node: String, _ setting: String, to value: SettingValue) throws(MediaError) {
        let plan = self.plan
        guard let there = plan.node(node), let kind = graph.registry.kind(named: there.node.kind) else {
            throw unknown(node)
        }
        let problems = MediaGraph(nodes: [Node(there.node.kind, name: node, settings: [setting: value])])
            .validate(with: graph.registry).filter { $0.setting == setting }
        if let problem = problems.first { throw Self.invalid(problem.message, node) }
        guard kind.setting(setting)?.isChangeable == true else {
            let changeable = kind.settings.filter(\.isChangeable).map(\.name)
            throw MediaError(
                code: MediaError.Code.settingFixed,
                message: "\(node).\(setting) is fixed while the node runs; "
                    + (changeable.isEmpty
                        ? "a \(kind.name) has no live settings. "
                        : "the live settings are \(changeable.joined(separator: ", ")). ")
                    + "Apply a graph with the new value to replace the node.", node: node)
        }
    }

    private func unknown(_ node: String) -> MediaError {
        let hint = node.nearest(among: plan.nodes.map(\.node.name)).map { "; did you mean \"\($0)\"?" }
        return Self.invalid("There is no node \"\(node)\"\(hint ?? " in the running graph.")", node)
    }

    private static func invalid(_ message: String, _ node: String) -> MediaError {
        MediaError(code: MediaError.Code.graphInvalid, message: message, node: node)
    }

    func find<Kind: RunningNode>(_ type: Kind.Type, _ name: String) -> Kind? {
        graph.node(name)?.running as? Kind
    }
}

import Dispatch
internal import GStreamerKit
public import MediaGraph
import Synchronization

/// Runs a composition of nodes:
///
/// ```swift
/// let camera = Camera(), encoder = VideoEncoder(.vp8)
/// let pipeline = try await MediaPipeline {
///     camera >>> Window().optional
///     camera >>> encoder >>> Recorder(path: "talk.mkv")
/// }
/// try await pipeline.start()
/// ```
///
/// A pipeline is created, started and stopped once. Calls may come from any thread. Blocking work, including planning,
/// runs on the pipeline's own queues and never on Swift's pool.
///
/// It keeps the functions and values of its nodes, also after `stop`. An object that has the pipeline and is used by such a
/// function would never be released, so the function captures it weakly: `Frames { [weak self] frame in … }`.
///
/// Releasing a running pipeline stops it, without an event. Keep it until `stop()` has returned.
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

    /// The handles of the nodes.
    let roster: NodeRoster

    /// Plans a composition on this machine and creates its elements. Nothing runs yet.
    ///
    /// - Throws: `graph.invalid` with all problems of the graph; `element.missing` with the Debian package of a
    ///   GStreamer element that is not installed; the error of a node's device, such as `camera.absent`; or `node.in-use`
    ///   for a handle of another pipeline that has not stopped.
    public convenience init(_ composition: Composition) async throws(MediaError) {
        try await self.init(composition, limits: Limits())
    }

    /// Plans a composition of one route: `MediaPipeline(camera >>> window)`.
    public convenience init(_ route: Route) async throws(MediaError) {
        try await self.init(route.composition)
    }

    /// Plans a composition like `init(_:)`:
    ///
    /// ```swift
    /// let pipeline = try await MediaPipeline { camera >>> Window() }
    /// ```
    public nonisolated(nonsending) convenience init(
        @CompositionBuilder _ compose: () -> Composition
    ) async throws(MediaError) {
        try await self.init(compose())
    }

    /// Plans a graph of names, such as that of a file, on this machine, and creates its elements. Nothing runs yet.
    ///
    /// - Parameters:
    ///   - nodes: handles that take the places of the graph's nodes with their names, such as
    ///     `Frames { … }.named("preview")`. Their settings replace those of the graph. A node that calls a function of
    ///     the program needs one.
    ///   - registry: the kinds of nodes; `NodeRegistry.withRooms` of ConnectLiveSDK has `publish` and `subscribe`.
    /// - Throws: the errors of `init(_:)`; `graph.invalid` also for a handle that has no place in the graph.
    public convenience init(
        _ graph: MediaGraph, nodes: [any MediaNode] = [], registry: NodeRegistry = .builtIn
    ) async throws(MediaError) {
        let roster = NodeRoster()
        try await self.init(roster, try roster.enroll(nodes, in: graph), registry)
    }

    /// Tests shorten the limits, and step the clock.
    convenience init(
        _ composition: Composition, registry: NodeRegistry = .builtIn, limits: Limits,
        clock: PipelineClock = .monotonic
    ) async throws(MediaError) {
        let roster = NodeRoster()
        try await self.init(roster, try roster.enroll(composition), registry, limits: limits, clock: clock)
    }

    private convenience init(
        _ roster: NodeRoster, _ enrolled: NodeRoster.Enrolment, _ registry: NodeRegistry, limits: Limits = Limits(),
        clock: PipelineClock = .monotonic
    ) async throws(MediaError) {
        self.init(
            try await offPool { () throws(MediaError) in
                let bindings = try NodeBindings(enrolled.codes, registry)
                let plan = try Planner(registry.with(bindings.own), SystemEnvironment()).plan(
                    enrolled.graph, bound: bindings.names)
                return try GraphEditor(plan, bindings, registry, limits, clock)
            }, roster)
        roster.pipeline.set(self)
        roster.edited(enrolled, now: enrolled.graph)
    }

    /// Plans a graph of names, whose functions are bound to these names.
    package convenience init(
        _ graph: MediaGraph, bindings: NodeBindings, registry: NodeRegistry = .builtIn
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
    package convenience init(
        _ plan: GraphPlan, bindings: NodeBindings = NodeBindings(), registry: NodeRegistry = .builtIn
    ) async throws(MediaError) {
        self.init(
            try await offPool { () throws(MediaError) in try GraphEditor(plan, bindings, registry, Limits(), .monotonic)
            })
    }

    /// Plans a composition on this machine, without making a pipeline. The handles stay free.
    ///
    /// - Throws: like `init(_:)`.
    public static func plan(_ composition: Composition) async throws(MediaError) -> GraphPlan {
        let named = NodeRoster.Enrolment(composition, try composition.names { _ in nil })
        return try await offPool { () throws(MediaError) in
            let bindings = try NodeBindings(named.codes, .builtIn)
            return try Planner(NodeRegistry.builtIn.with(bindings.own), SystemEnvironment()).plan(
                named.graph, bound: bindings.names)
        }
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

    private init(_ editor: GraphEditor, _ roster: NodeRoster = NodeRoster()) {
        self.editor = editor
        self.roster = roster
        // Not only edits remove nodes: so does a failure of an optional one.
        editor.graph.onChange(for: roster) { [weak roster, weak graph = editor.graph] in
            if let graph { roster?.settle(in: graph.plan.source) }
        }
    }

    var graph: RunningGraph { editor.graph }
    private var reporter: Reporter { graph.context.reporter }
    private var control: DispatchQueue { graph.context.control }
    private var limits: Limits { editor.limits }

    /// The running plan: that of the initializer, with all edits since.
    public var plan: GraphPlan { graph.plan }

    /// The events of the pipeline, for one reader: each use of this property begins another one, and all of them get every
    /// event. `ended` and `failed` are the last one; the pipeline is still to be stopped. The events also end when it has
    /// stopped, or has failed to start.
    ///
    /// A reader that leaves 1000 events unread loses the oldest. While nothing reads, the latest 100 are kept for the next
    /// reader.
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
        // The handles join another pipeline only when their devices are closed.
        control.async { [graph, roster] in withExtendedLifetime(roster) { graph.halt() } }
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
    /// May be called repeatedly. After it returns, no function of the program is called, and the handles may join another
    /// pipeline. If a driver or file system blocks a node beyond the timeout, the rest of that node is released when it
    /// responds.
    public func stop() async {
        defer { roster.end() }
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
    package func requestKeyframe(_ node: String) throws(MediaError) {
        if let encoder = find(VideoEncoderNode.self, node) { return encoder.requestKeyframe() }
        guard plan.node(node) == nil else {
            throw Self.invalid("\"\(node)\" is not a video encoder, and only video encoders make keyframes.", node)
        }
        throw unknown(node)
    }

    /// The input of an RTP input node; nil if there is no such node with this name.
    package func rtpInput(_ node: String) -> PacketInput? {
        find(RTPInputNode.self, node).map(PacketInput.init)
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
    /// stay, because the composition has their handles, lose no frame and keep their settings.
    ///
    /// - Parameter seconds: the timeout for the new nodes' first frames.
    /// - Returns: the changes.
    /// - Throws: the reason why the graph was not replaced. It then runs unchanged. `graph.invalid`, an error of a new
    ///   node's device, `graph.edit-failed` if a new node delivered no frame in time, `node.in-use`, or the reason why a
    ///   node refuses a new value of a live setting.
    @discardableResult
    public func apply(_ composition: Composition, within seconds: Double = 2) async throws(MediaError) -> GraphChange {
        let enrolled = try roster.enroll(composition, beside: plan.expanded)
        return try await edit(enrolled, within: seconds) {
            enrolled.graph.keepingSettings(of: enrolled.staying, in: $0)
        }
    }

    /// Replaces the running graph like `apply(_:within:)`.
    @discardableResult
    public nonisolated(nonsending) func apply(
        within seconds: Double = 2, @CompositionBuilder _ compose: () -> Composition
    ) async throws(MediaError) -> GraphChange {
        try await apply(compose(), within: seconds)
    }

    /// Adds nodes and links to the running graph, as one transaction like `apply`:
    ///
    /// ```swift
    /// try await pipeline.add { encoder >>> Recorder(path: "talk.mkv") }
    /// ```
    @discardableResult
    public nonisolated(nonsending) func add(
        within seconds: Double = 2, @CompositionBuilder _ compose: () -> Composition
    ) async throws(MediaError) -> GraphChange {
        let enrolled = try roster.enroll(compose(), beside: plan.expanded, isWhole: false)
        return try await edit(enrolled, within: seconds) { $0.adding(enrolled.graph) }
    }

    /// Removes a node from the running graph, and the nodes that only it fed or that fed only it, such as its
    /// camera. A recording is completed.
    ///
    /// - Parameter seconds: the timeout, like that of `apply`.
    /// - Throws: `node.not-running` if the node is not in this pipeline's graph; otherwise like `apply`.
    @discardableResult
    public func remove(_ node: some MediaNode, within seconds: Double = 2) async throws(MediaError) -> GraphChange {
        let (pipeline, name) = try node.running()
        guard pipeline === self else { throw node.handle.identity.notRunning(as: nil) }
        return try await edit(nil, within: seconds) { $0.removingPart(of: name) }
    }

    /// Replaces the running graph like `apply(_:within:)` by a graph of names, such as that of a file.
    ///
    /// - Parameter nodes: handles that take the places of new nodes with their names, as for a new pipeline.
    @discardableResult
    public func apply(
        _ graph: MediaGraph, nodes: [any MediaNode] = [], within seconds: Double = 2
    ) async throws(MediaError) -> GraphChange {
        let enrolled = try roster.enroll(nodes, in: graph)
        return try await edit(enrolled, within: seconds) { _ in enrolled.graph }
    }

    /// Replaces the running graph by a graph of names. Functions of removed nodes are released. With `needsDevices`, also
    /// throws if the device of a new source is away. Otherwise a stand-in is its first frame.
    @discardableResult
    package func apply(
        _ graph: MediaGraph, bindings: NodeBindings, within seconds: Double = 2, needsDevices: Bool = false
    ) async throws(MediaError) -> GraphChange {
        try await edit(bindings, within: seconds, needsDevices: needsDevices) { _ in graph }
    }

    private func edit(
        _ enrolled: NodeRoster.Enrolment?, within seconds: Double,
        _ change: @escaping @Sendable (MediaGraph) -> MediaGraph
    ) async throws(MediaError) -> GraphChange {
        let (codes, registry) = (enrolled?.codes ?? [:], graph.registry)
        let made: GraphChange
        do throws(MediaError) {
            let bindings = try await offPool { () throws(MediaError) in try NodeBindings(codes, registry) }
            made = try await edit(bindings, within: seconds, change)
        } catch {
            roster.edited(enrolled, now: plan.source, isDone: false)
            throw error
        }
        roster.edited(enrolled, now: plan.source)
        return made
    }

    private func edit(
        _ bindings: NodeBindings, within seconds: Double, needsDevices: Bool = false,
        _ change: @escaping @Sendable (MediaGraph) -> MediaGraph
    ) async throws(MediaError) -> GraphChange {
        let state = state
        guard state == .running else {
            let isOver = state != .prepared && state != .paused
            throw MediaError(
                code: isOver ? MediaError.Code.pipelineStopped : MediaError.Code.pipelineNotRunning,
                message: "The graph cannot be changed while it is \(state.rawValue), only while it runs.")
        }
        let runs = self.graph
        return try await editor.edit(seconds: seconds, bringing: bindings, needsDevices: needsDevices) {
            running throws(MediaError) in
            let graph = change(running.source)
            let bound = runs.context.bound.bindings.only(for: graph, runs.registry).names
            return try Planner(runs.registry, SystemEnvironment()).plan(graph, bound: bound, running: running)
        }
    }

    /// Changes the bitrate of an encoder. Throws like `set` for its setting `bitrate`.
    package func setBitrate(_ bitrate: Bitrate, _ node: String) async throws(MediaError) {
        try await set(node, "bitrate", to: .integer(bitrate.bitsPerSecond))
    }

    /// Changes a live setting of a node.
    ///
    /// - Throws: `graph.invalid` for an unknown node or setting or an invalid value; `graph.setting-fixed` for a
    ///   setting that is not live. `apply` replaces the node instead.
    package func set(_ node: String, _ setting: String, to value: SettingValue) async throws(MediaError) {
        try check(node, setting, to: value)
        _ = try await editor.edit(seconds: 2) { running throws(MediaError) in running.setting(node, setting, to: value)
        }
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
                    + "To replace the node, apply a graph with the new value, or a composition with a new handle.",
                node: node)
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

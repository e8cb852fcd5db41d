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
/// try await pipeline.run()
/// ```
///
/// `run` returns when the pipeline has ended. A program that has more to do calls `start` and `stop` itself.
///
/// A pipeline is created, started and stopped once. Calls may come from any thread. Blocking work, including planning,
/// runs on the pipeline's own queues and never on Swift's pool. If the task that makes, starts or edits a pipeline is
/// cancelled, the call throws `CancellationError` and leaves nothing behind: no pipeline, a stopped one, or the graph as it
/// was.
///
/// It keeps the functions and values of its nodes until `stop` has returned. An object that has the pipeline and is used by
/// such a function is not released before, unless the function captures it weakly: `Frames { [weak self] frame in … }`.
///
/// Releasing a running pipeline stops it, without an event. Keep it until `stop()` has returned.
public final class MediaPipeline: Sendable {
    /// The state of a pipeline.
    public enum State: String, Sendable, Hashable, Codable {
        /// Its elements exist. Nothing runs.
        case prepared
        /// Media flows.
        case running
        /// Cameras deliver nothing, and files keep their position, until `resume`.
        case paused
        /// All sources have ended.
        case ended
        /// A node has failed. The events have the error.
        case failed
        /// It has stopped, and cannot start again.
        case stopped
    }

    /// The name under which the start waits until all devices and files are open, which may take indefinitely long.
    private static let allOpen = ""

    /// Timers for work that may block the control queue.
    private let timeouts = DispatchQueue(label: "media.limits")
    private let startTimeout = Mutex<Timeout?>(nil)
    /// The node that checks its files and claims them, before anything plays.
    private let preparing = Mutex<String?>(nil)
    let editor: GraphEditor
    /// Prepared, running or stopped.
    private let phase = Mutex(State.prepared)
    /// The start, for which a pause waits.
    private let starting = Ongoing()
    /// The part of it that blocks the control queue, for which edits wait: a new node needs a graph that plays.
    private let opening = Ongoing()

    /// The handles of the nodes.
    let roster: NodeRoster

    /// Plans a composition on this machine and creates its elements. Nothing runs yet.
    ///
    /// - Throws: `graph.invalid` with all problems of the graph; `element.missing` with the Debian package of a
    ///   GStreamer element that is not installed; the error of a node's device, such as `camera.absent`; or `node.in-use`
    ///   for a handle of another pipeline that has not stopped.
    public convenience init(_ composition: Composition) async throws {
        try await self.init(composition, limits: Limits())
    }

    /// Plans a composition like `init(_:)`:
    ///
    /// ```swift
    /// let pipeline = try await MediaPipeline { camera >>> Window() }
    /// ```
    ///
    /// - Throws: like `init(_:)`.
    public nonisolated(nonsending) convenience init(
        @CompositionBuilder _ compose: () -> Composition
    ) async throws {
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
    ) async throws {
        let roster = NodeRoster()
        try await self.init(roster, try roster.enroll(nodes, in: graph), registry)
    }

    /// Tests shorten the limits, and step the clock.
    convenience init(
        _ composition: Composition, registry: NodeRegistry = .builtIn, limits: Limits,
        clock: PipelineClock = .monotonic
    ) async throws {
        let roster = NodeRoster()
        try await self.init(roster, try roster.enroll(composition), registry, limits: limits, clock: clock)
    }

    private convenience init(
        _ roster: NodeRoster, _ enrolled: NodeRoster.Enrolment, _ registry: NodeRegistry, limits: Limits = Limits(),
        clock: PipelineClock = .monotonic
    ) async throws {
        self.init(
            try await offPoolUntilCancelled { () throws(MediaError) in
                let bindings = try NodeBindings(enrolled.codes, registry)
                let plan = try Planner(registry.with(bindings.own), SystemEnvironment()).plan(
                    enrolled.graph, bound: bindings.names)
                if Task.isCancelled { throw Reporter.cancelled }
                return try GraphEditor(plan, bindings, registry, limits, clock, owners: enrolled.owners)
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
            try await offPoolInTime("The plan", within: limits.plan) { () throws(MediaError) in
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
    public static func plan(_ composition: Composition) async throws -> GraphPlan {
        let named = NodeRoster.Enrolment(composition, try composition.names { _ in nil })
        return try await offPoolUntilCancelled { () throws(MediaError) in
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
    ) async throws -> GraphPlan {
        try await offPoolUntilCancelled { () throws(MediaError) in
            try Planner(registry, environment).plan(graph, bound: bound)
        }
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

    /// The events of the pipeline, for one reader: each use of this property begins another one. A reader gets the latest 100
    /// events so far, without `keyframeNeeded`, and all further ones. One that leaves 1000 events unread loses the oldest.
    ///
    /// `ended` and `failed` are the last one; the pipeline is still to be stopped, unless it `run`s. The events also end when
    /// it has stopped, or has failed to start. A reader that begins then also gets the warnings of the stop.
    public var events: AsyncStream<MediaEvent> { reporter.listen() }

    /// The state now.
    public var state: State {
        let phase = phase.withLock { $0 }
        guard phase == .running else { return phase }
        if reporter.hasFailed { return .failed }
        if reporter.hasEnded { return .ended }
        return graph.context.pipeline.isPaused ? .paused : .running
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
    public func start() async throws {
        try enter()
        let isDecided = AtomicBool()
        try await withTaskCancellationHandler {
            do throws(MediaError) {
                try await open()
            } catch {
                if isDecided.exchange(true) { throw CancellationError() }
                throw error
            }
            guard isDecided.exchange(true) else { return }
            await stop()
            throw CancellationError()
        } onCancel: {
            if !isDecided.exchange(true) { Task { await self.stop() } }
        }
    }

    /// The same, whether or not the task is cancelled.
    package func begin() async throws(MediaError) {
        try enter()
        try await open()
    }

    private func enter() throws(MediaError) {
        let isFirst = phase.withLock { phase in
            guard phase == .prepared else { return false }
            phase = .running
            starting.begin()
            opening.begin()
            return true
        }
        if !isFirst { throw Self.runsOnce }
    }

    static var runsOnce: MediaError {
        MediaError(code: MediaError.Code.pipelineStopped, message: "A media pipeline runs once. Create another one.")
    }

    private func open() async throws(MediaError) {
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
        opening.end()
        starting.end()
    }

    /// The number of edits that wait until all elements play.
    var editsAwaitingStart: Int { opening.waiting }

    /// Waits until a start in progress lets elements play, or has failed, or the edit is cancelled.
    func waitToEdit(_ ticket: EditTicket) async throws(MediaError) {
        let answer = Answer<Void>()
        try ticket.begin { answer.give(()) }
        opening.whenOver { answer.give(()) }
        await answer.value
        ticket.end()
        if let failure = ticket.outcome.failure { throw failure }
    }

    private var isStarting: Bool { phase.withLock { $0 == .running } && !reporter.hasFailed }

    private func begin(_ done: @escaping @Sendable (MediaError?) -> Void) {
        defer { opening.end() }
        guard phase.withLock({ $0 == .running }) else { return done(Reporter.stopped) }
        reporter.await(Self.allOpen)
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
        reporter.isReady(Self.allOpen)
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
            if awaited.contains(Self.allOpen) {
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
    /// May be called repeatedly. After it returns, no function of the program is called, the functions and values of the nodes
    /// are released, and the handles may join another pipeline. If a driver or file system blocks a node beyond the timeout, the rest of that node is released when it
    /// responds.
    public func stop() async {
        defer { roster.end() }
        let former = phase.withLock { phase in
            defer { phase = .stopped }
            return phase
        }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            reporter.whenClosed { continuation.resume() }
            // The first caller closes the reporter when all nodes are stopped.
            guard former != .stopped else { return }
            let timeout = Timeout(at: .now() + limits.stop, on: timeouts) { [self] _ in
                if reporter.isOpen { abandon() }
                reporter.close()
            }
            let hasHalted = AtomicBool()
            // A running edit ends first.
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
                        self.graph.discard()
                    }
                    timeout.cancel()
                    self.graph.release()
                    // Before any of several callers returns.
                    self.roster.end()
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
            starting.whenOver { continuation.resume() }
        }
        await onControl { if self.state == .running { self.graph.context.pipeline.pause() } }
    }

    /// Continues after a pause.
    public func resume() async {
        await onControl { self.graph.context.pipeline.resume() }
    }

    private func onControl(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            control.async {
                body()
                continuation.resume()
            }
        }
    }

    /// Starts the pipeline, runs it until it ends, and stops it. Returns when all sources have ended, when another task has
    /// called `stop`, or at Ctrl-C, SIGTERM or SIGHUP. A second signal ends the process.
    ///
    /// - Parameter handlesSignals: whether to wait for signals. Before and after, they have the effect that the program chose.
    /// - Throws: the errors of `start`; the error of the event `failed`; `CancellationError` if the task is cancelled. The
    ///   pipeline is then stopped, too.
    public func run(handlesSignals: Bool = true) async throws {
        guard phase.withLock({ $0 == .prepared }) else { throw Self.runsOnce }
        let (events, signals) = (self.events, handlesSignals ? TerminationSignals() : nil)
        defer { withExtendedLifetime(signals) {} }
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await self.start()
                    for await case .failed(let error) in events { throw error }
                }
                if let signals { group.addTask { await signals.wait() } }
                _ = try await group.next()
                group.cancelAll()
            }
        } catch let error as MediaError where error.code == MediaError.Code.pipelineStopped {
            // Stopped while it started.
        } catch {
            await stop()
            throw error
        }
        await stop()
        try Task.checkCancellation()
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
    public var statistics: MediaStatistics { graph.statistics }

    /// Results that the graph requested but did not get, although it continued: a recording without its audio, for
    /// example. Each was reported as a warning. The list is complete after `stop()`.
    public var shortfalls: [MediaError] { reporter.shortfalls }
}

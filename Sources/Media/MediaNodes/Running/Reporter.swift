import MediaGraph
import Synchronization

/// Reports from the nodes of one pipeline to the pipeline: readiness, failures, events.
///
/// Nodes retain the reporter and not the pipeline, so a probe inside an element does not retain the owner of the
/// element.
package final class Reporter: Sendable {
    private struct State {
        /// Nodes whose first frame `start()` waits for.
        var awaited: Set<String> = []
        var seen: Set<String> = []
        var failure: MediaError?
        var hasEnded = false
        var shortfalls: [MediaError] = []
        var isClosed = false
        var listeners: [Int: AsyncStream<MediaEvent>.Continuation] = [:]
        var listenersMade = 0
        /// The latest events, for later listeners; nil if a function gets them.
        var history: [MediaEvent]? = []
        /// Whether the pipeline has ended or failed, so that its listeners have got their last event.
        var isOver = false
        var onSettled: (@Sendable (MediaError?) -> Void)?
        var onClosed: [@Sendable () -> Void] = []
        /// Handles failures that do not end the whole graph. True if it did.
        var intercept: Intercept?
        var onDeviceEvent: (@Sendable () -> Void)?
        var standing: (@Sendable (String) -> Standing)?
        /// The newest event of each such node, by prefix.
        var held: [String: MediaEvent] = [:]
        /// The number of each of these events, and how many there have been.
        var heldNumbers: [String: Int] = [:]
        var heldMade = 0

        /// Passes an event to all listeners. Returns those whose last one it is.
        mutating func pass(_ event: MediaEvent) -> [AsyncStream<MediaEvent>.Continuation] {
            // A decoder repeats its request, so an old one is of no use.
            if case .keyframeNeeded = event {} else { history?.append(event) }
            if let count = history?.count, count > Reporter.keptEvents { history?.removeFirst() }
            for listener in listeners.values { listener.yield(event) }
            guard event.isLast else { return [] }
            defer { (isOver, listeners) = (true, [:]) }
            return Array(listeners.values)
        }
    }

    /// Whether the graph has a node.
    enum Standing: Sendable {
        /// An edit is about to add it.
        case staged
        case running
        case gone
    }

    /// Gets a failure, the name of its node, and the prefix of the node whose own reporter reports it.
    typealias Intercept = @Sendable (MediaError, _ node: String, _ prefix: String?) -> Bool

    /// The reporters of a pipeline and of its nodes have this in common.
    private final class Shared: Sendable {
        let state = Mutex(State())
        private let events: (@Sendable (MediaEvent) -> Void)?

        init(_ events: (@Sendable (MediaEvent) -> Void)?) {
            self.events = events
            if events != nil { state.withLock { $0.history = nil } }
        }

        func emit(_ event: MediaEvent) {
            events?(event)
            // Under the lock, so that all listeners get the events in one order, and none after its end.
            let ending = state.withLock { $0.pass(event) }
            for listener in ending { listener.finish() }
        }
    }

    private let shared: Shared
    /// That of the node which reports. Nil for the pipeline.
    private let prefix: String?

    package convenience init(events: (@Sendable (MediaEvent) -> Void)?) {
        self.init(Shared(events), prefix: nil)
    }

    private init(_ shared: Shared, prefix: String?) {
        (self.shared, self.prefix) = (shared, prefix)
    }

    /// The reporter of one node: while an edit replaces a node, there are two of one name.
    func ofNode(_ prefix: String) -> Reporter { Reporter(shared, prefix: prefix) }

    /// Makes `start()` wait for the first frame of `node`.
    package func await(_ node: String) {
        shared.state.withLock { _ = $0.awaited.insert(node) }
    }

    /// Called when a capturer delivers media.
    package func isReady(_ node: String) {
        let settled = shared.state.withLock { state -> (@Sendable (MediaError?) -> Void)? in
            state.awaited.remove(node)
            guard state.awaited.isEmpty else { return nil }
            defer { state.onSettled = nil }
            return state.onSettled
        }
        settled?(nil)
    }

    /// Called when a renderer or an RTP output got its first frame.
    package func firstFrame(_ node: String) {
        let isNews = shared.state.withLock { !$0.isClosed && $0.seen.insert(node).inserted }
        if isNews { shared.emit(.firstFrame(node: node)) }
    }

    package func keyframeNeeded(_ node: String) {
        if isOpen { shared.emit(.keyframeNeeded(node: node)) }
    }

    /// Called when a video encoder has begun to use another size or rate.
    package func qualityChanged(_ node: String, _ quality: VideoQuality) {
        if isOpen { shared.emit(.qualityChanged(node: node, quality)) }
    }

    /// Called when every sink has reached its end.
    package func ended() {
        let isNews = shared.state.withLock { state in
            guard !state.isClosed, !state.hasEnded, state.failure == nil else { return false }
            state.hasEnded = true
            return true
        }
        if isNews { shared.emit(.ended) }
    }

    /// Sets a function that handles failures of optional nodes and of edits, which do not end the whole graph.
    func intercept(_ body: @escaping Intercept) {
        shared.state.withLock { $0.intercept = body }
    }

    package var hasFailed: Bool { shared.state.withLock { $0.failure != nil } }
    var hasEnded: Bool { shared.state.withLock { $0.hasEnded } }

    /// Called when an optional part was removed.
    func partFailed(_ error: MediaError, _ nodes: [String]) {
        for node in nodes { isReady(node) }
        if isOpen { shared.emit(.partFailed(error, nodes: nodes)) }
    }

    /// Called when a node has not done, or will not do, all of its work, and the rest continues.
    package func fallShort(_ error: MediaError, _ node: String) {
        let error = error.about(node)
        let isOpen = shared.state.withLock { state in
            if !state.isClosed { state.shortfalls.append(error) }
            return !state.isClosed
        }
        if isOpen { shared.emit(.warning(node: node, message: "\(error)")) }
    }

    var shortfalls: [MediaError] { shared.state.withLock { $0.shortfalls } }

    /// An event of a source's device. That of a node that an edit is about to add waits for `release`, because the edit may
    /// fail. That of a node that has left the graph is dropped.
    func device(_ event: MediaEvent) {
        let isNews = shared.state.withLock { state in
            guard !state.isClosed else { return false }
            guard let prefix else { return true }
            let standing = state.standing?(prefix) ?? .running
            if standing == .gone { return false }
            guard state.held[prefix] != nil || standing == .staged else { return true }
            state.heldMade += 1
            state.heldNumbers[prefix] = state.heldMade
            state.held[prefix] = event
            return false
        }
        guard isNews else { return }
        emitDevice(event)
    }

    /// Called when the sound server has silenced a loudspeaker, or no longer does.
    func soundInterrupted(_ node: String, _ isInterrupted: Bool) {
        if isOpen { shared.emit(isInterrupted ? .soundInterrupted(node: node) : .soundResumed(node: node)) }
    }

    private func emitDevice(_ event: MediaEvent) {
        shared.state.withLock { $0.onDeviceEvent }?()
        shared.emit(event)
    }

    /// Sets the function that returns the standing of a prefix's node. It must not call the reporter.
    func know(_ standing: @escaping @Sendable (String) -> Standing) {
        shared.state.withLock { $0.standing = standing }
    }

    /// Reports the events of devices that have waited for the end of an edit, or drops them.
    func release(isSuccess: Bool) {
        if !isSuccess { shared.state.withLock { ($0.held, $0.heldNumbers) = ([:], [:]) } }
        // An event stays held until it has been emitted, so that a newer one of its node does not overtake it.
        while let next = nextHeld {
            emitDevice(next.event)
            shared.state.withLock { state in
                guard state.heldNumbers[next.prefix] == next.number else { return }
                state.held[next.prefix] = nil
            }
        }
    }

    private var nextHeld: (prefix: String, event: MediaEvent, number: Int?)? {
        shared.state.withLock { state in
            guard !state.isClosed, let first = state.held.min(by: { $0.key < $1.key }) else { return nil }
            return (first.key, first.value, state.heldNumbers[first.key])
        }
    }

    /// Calls `body` before each event of a source's device is reported.
    func onDeviceEvent(_ body: @escaping @Sendable () -> Void) {
        shared.state.withLock { $0.onDeviceEvent = body }
    }

    /// The number of events that a slow reader may leave unread.
    private static let unreadEvents = 1000
    /// The number of events that are kept for later readers.
    fileprivate static let keptEvents = 100

    /// The latest events so far, and all further ones. Ends with the end or failure of the pipeline, or when nothing more is
    /// reported.
    func listen() -> AsyncStream<MediaEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: MediaEvent.self, bufferingPolicy: .bufferingNewest(Self.unreadEvents))
        let number = shared.state.withLock { state -> Int? in
            // Under the lock, so that later events stay behind them.
            for event in state.history ?? [] { continuation.yield(event) }
            if state.isClosed || state.isOver { return nil }
            state.listenersMade += 1
            state.listeners[state.listenersMade] = continuation
            return state.listenersMade
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak shared] _ in
            shared?.state.withLock { _ = $0.listeners.removeValue(forKey: number) }
        }
        return stream
    }

    package func warn(_ node: String?, _ message: String) {
        if isOpen { shared.emit(.warning(node: node, message: message)) }
    }

    /// Records the first failure; its consequences are not reported. While `start()` waits, it throws the failure.
    /// Later the failure is an event.
    package func fail(_ error: MediaError, _ node: String? = nil) {
        let error = node.map { error.about($0) } ?? error
        let intercept = shared.state.withLock { $0.isClosed ? nil : $0.intercept }
        if let node, let intercept, intercept(error, node, prefix) { return }
        let (isNews, settled) = shared.state.withLock { state -> (Bool, (@Sendable (MediaError?) -> Void)?) in
            guard !state.isClosed, state.failure == nil else { return (false, nil) }
            state.failure = error
            defer { state.onSettled = nil }
            return (true, state.onSettled)
        }
        guard isNews else { return }
        if let settled {
            settled(error)
        } else {
            shared.emit(.failed(error))
        }
    }

    /// Calls `body` once, when all awaited nodes are ready (nil) or a node failed. At least one is still awaited.
    func whenSettled(_ body: @escaping @Sendable (MediaError?) -> Void) {
        let failure = shared.state.withLock { state in
            let failure = state.failure ?? (state.isClosed ? Self.stopped : nil)
            if failure == nil { state.onSettled = body }
            return failure
        }
        if let failure { body(failure) }
    }

    /// The nodes that `start()` still waits for.
    package var awaited: Set<String> { shared.state.withLock { $0.awaited } }

    /// Stops reporting events. A caller that still waits for the start is told that there will be none.
    package func close() {
        let (settled, closed, listeners) = shared.state.withLock { state in
            state.isClosed = true
            defer { (state.onSettled, state.onClosed, state.listeners) = (nil, [], [:]) }
            return (state.onSettled, state.onClosed, state.listeners.values)
        }
        for listener in listeners { listener.finish() }
        settled?(Self.stopped)
        for body in closed { body() }
    }

    /// Calls `body` once, after `close`.
    func whenClosed(_ body: @escaping @Sendable () -> Void) {
        let isOpen = shared.state.withLock { state in
            if !state.isClosed { state.onClosed.append(body) }
            return !state.isClosed
        }
        if !isOpen { body() }
    }

    package static var stopped: MediaError {
        MediaError(code: MediaError.Code.pipelineStopped, message: "The media pipeline was stopped while it started.")
    }

    static var stoppedWhileEdited: MediaError {
        MediaError(
            code: MediaError.Code.pipelineStopped,
            message: "The edit was not made, because the media pipeline was stopped meanwhile.")
    }

    /// For callers whose task was cancelled; they throw `CancellationError` instead.
    static var cancelled: MediaError {
        MediaError(code: MediaError.Code.pipelineStopped, message: "The task was cancelled.")
    }

    var isOpen: Bool { shared.state.withLock { !$0.isClosed } }
}

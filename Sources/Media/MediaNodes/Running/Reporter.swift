package import MediaGraph
import Synchronization

/// What the nodes of one pipeline tell the pipeline: readiness, failure, events.
///
/// Nodes hold the reporter and not the pipeline, so that a probe inside an element keeps nothing alive that owns the
/// element.
package final class Reporter: Sendable {
    private struct State {
        /// Nodes whose first frame `start()` waits for.
        var awaited: Set<String> = []
        var seen: Set<String> = []
        var failure: MediaError?
        var hasEnded = false
        var isClosed = false
        var onSettled: (@Sendable (MediaError?) -> Void)?
    }

    private let state = Mutex(State())
    private let events: (@Sendable (MediaEvent) -> Void)?

    package init(events: (@Sendable (MediaEvent) -> Void)?) {
        self.events = events
    }

    /// From now on `start()` waits for the first frame of `node`.
    package func await(_ node: String) {
        state.withLock { _ = $0.awaited.insert(node) }
    }

    /// A capturer gives media.
    package func isReady(_ node: String) {
        let settled = state.withLock { state -> (@Sendable (MediaError?) -> Void)? in
            state.awaited.remove(node)
            guard state.awaited.isEmpty else { return nil }
            defer { state.onSettled = nil }
            return state.onSettled
        }
        settled?(nil)
    }

    /// A renderer or an RTP output got its first frame.
    package func firstFrame(_ node: String) {
        let isNews = state.withLock { !$0.isClosed && $0.seen.insert(node).inserted }
        if isNews { events?(.firstFrame(node: node)) }
    }

    package func keyframeNeeded(_ node: String) {
        if isOpen { events?(.keyframeNeeded(node: node)) }
    }

    /// Every sink has come to its end.
    package func ended() {
        let isNews = state.withLock { state in
            guard !state.isClosed, !state.hasEnded, state.failure == nil else { return false }
            state.hasEnded = true
            return true
        }
        if isNews { events?(.ended) }
    }

    /// The first failure counts: what follows from it is not reported. While `start()` waits, it throws the failure;
    /// later it is an event.
    package func fail(_ error: MediaError, _ node: String? = nil) {
        let (isNews, settled) = state.withLock { state -> (Bool, (@Sendable (MediaError?) -> Void)?) in
            guard !state.isClosed, state.failure == nil else { return (false, nil) }
            state.failure = error
            defer { state.onSettled = nil }
            return (true, state.onSettled)
        }
        guard isNews else { return }
        if let settled {
            settled(error)
        } else {
            events?(.failed(error))
        }
    }

    /// Calls `body` once, when all awaited nodes are ready (nil) or something failed.
    package func whenSettled(_ body: @escaping @Sendable (MediaError?) -> Void) {
        let (now, failure) = state.withLock { state -> (Bool, MediaError?) in
            if let failure = state.failure { return (true, failure) }
            if state.isClosed { return (true, Self.stopped) }
            if state.awaited.isEmpty { return (true, nil) }
            state.onSettled = body
            return (false, nil)
        }
        if now { body(failure) }
    }

    /// The nodes that `start()` still waits for.
    package var awaited: Set<String> { state.withLock { $0.awaited } }

    /// No event is reported after this; who still waits for the start hears that there will be none.
    package func close() {
        let settled = state.withLock { state in
            state.isClosed = true
            defer { state.onSettled = nil }
            return state.onSettled
        }
        settled?(Self.stopped)
    }

    package static var stopped: MediaError {
        MediaError(code: MediaError.Code.pipelineStopped, message: "The media pipeline was stopped while it started.")
    }

    private var isOpen: Bool { state.withLock { !$0.isClosed } }
}

internal import Dispatch
internal import Foundation
internal import Synchronization

/// The queue for callbacks and delegate events, in order: the one that the application sets, else the main queue.
///
/// The choice never depends on the load. If the main queue runs nothing for 5 s while callbacks wait, one line on standard
/// error reports it, because an application without a main loop receives no callbacks.
final class CallbackQueue: Sendable {
    static let shared = CallbackQueue()

    private struct State {
        var chosen: DispatchQueue?
        var probe = Probe.none
        /// Whether callbacks have been queued since the probe.
        var hasMore = false
    }

    /// Work on the main queue that shows whether something runs it.
    private enum Probe {
        case none, waiting, served
        /// Once is enough.
        case reported
    }

    private let state = Mutex(State())
    private let main: DispatchQueue
    private let later: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let warn: @Sendable (String) -> Void

    /// - Parameters:
    ///   - later: calls a function once the main queue may be busy no longer
    ///   - warn: called at most once, by that function
    init(
        main: DispatchQueue = .main,
        later: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = {
            DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(5), execute: $0)
        },
        warn: @escaping @Sendable (String) -> Void = { FileHandle.standardError.write(Data("\($0)\n".utf8)) }
    ) {
        self.main = main
        self.later = later
        self.warn = warn
    }

    /// The application's queue.
    var chosen: DispatchQueue? {
        get { state.withLock { $0.chosen } }
        set { state.withLock { $0.chosen = newValue } }
    }

    /// Queues a callback.
    func run(_ callback: @escaping @Sendable () -> Void) {
        let (queue, mustWatch) = state.withLock { state in
            if let chosen = state.chosen { return (chosen, false) }
            guard state.probe == .none else {
                state.hasMore = true
                return (main, false)
            }
            state.probe = .waiting
            return (main, true)
        }
        if mustWatch { watch() }
        queue.async(execute: callback)
    }

    private func watch() {
        main.async { self.state.withLock { if $0.probe == .waiting { $0.probe = .served } } }
        later { self.review() }
    }

    /// Reports a main queue that has not run the probe. If callbacks came after the probe, another one follows.
    private func review() {
        let (isStuck, hasMore) = state.withLock { state in
            let (isStuck, hasMore) = (state.probe == .waiting, state.hasMore)
            state.probe = isStuck ? .reported : hasMore ? .waiting : .none
            state.hasMore = false
            return (isStuck, hasMore)
        }
        if isStuck {
            warn(
                "ConnectLiveSDK: callbacks are waiting because nothing runs the main queue. Run a main loop "
                    + "(dispatchMain(), RunLoop.main.run() or an async main), or set ConnectLive.callbackQueue.")
        } else if hasMore {
            watch()
        }
    }
}

/// Carries a callback of the application, which may not be Sendable, to the callback queue.
struct Callback<each Argument: Sendable>: @unchecked Sendable {
    // Sendable by hand: it is called only on the callback queue, one call after another, as documented.
    private let body: (repeat each Argument) -> Void
    private let run: @Sendable (@escaping @Sendable () -> Void) -> Void

    init(_ body: @escaping (repeat each Argument) -> Void, on queue: CallbackQueue = .shared) {
        self.body = body
        run = { queue.run($0) }
    }

    /// - Parameter queue: a serial queue of the SDK's own, for a callback that the application may wait for.
    init(_ body: @escaping (repeat each Argument) -> Void, on queue: DispatchQueue) {
        self.body = body
        run = { queue.async(execute: $0) }
    }

    /// - Parameter events: the queue of a room, with whose events the callback keeps its order.
    init(_ body: @escaping (repeat each Argument) -> Void, among events: DelegateQueue) {
        self.body = body
        run = { events.complete($0) }
    }

    func callAsFunction(_ argument: repeat each Argument) {
        let arguments = (repeat each argument)
        run { body(repeat each arguments) }
    }
}

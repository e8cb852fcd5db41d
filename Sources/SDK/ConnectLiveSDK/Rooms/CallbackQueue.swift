internal import Dispatch
internal import Foundation
internal import Synchronization

/// The queue for callbacks and delegate events, in order: the one that the application sets, else the main queue.
///
/// The choice never depends on the load. If the main queue runs nothing for 5 s after the first callback, one line on
/// standard error reports it, because an application without a main loop would receive no callbacks.
final class CallbackQueue: Sendable {
    static let shared = CallbackQueue()

    private struct State {
        var chosen: DispatchQueue?
        var isWatched = false
        var isServed = false
    }

    private let state = Mutex(State())
    private let main: DispatchQueue
    private let grace: DispatchTimeInterval
    private let warn: @Sendable (String) -> Void

    /// - Parameters:
    ///   - grace: how long the main queue may be busy before one call of `warn`
    ///   - warn: called on a queue of the system
    init(
        main: DispatchQueue = .main, grace: DispatchTimeInterval = .seconds(5),
        warn: @escaping @Sendable (String) -> Void = { FileHandle.standardError.write(Data("\($0)\n".utf8)) }
    ) {
        self.main = main
        self.grace = grace
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
            guard let chosen = state.chosen else {
                defer { state.isWatched = true }
                return (main, !state.isWatched)
            }
            return (chosen, false)
        }
        if mustWatch { watch() }
        queue.async(execute: callback)
    }

    private func watch() {
        main.async { self.state.withLock { $0.isServed = true } }
        DispatchQueue.global().asyncAfter(deadline: .now() + grace) {
            guard !self.state.withLock({ $0.isServed }) else { return }
            self.warn(
                "ConnectLiveSDK: callbacks are waiting because nothing runs the main queue. Run a main loop "
                    + "(dispatchMain(), RunLoop.main.run() or an async main), or set ConnectLive.callbackQueue.")
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

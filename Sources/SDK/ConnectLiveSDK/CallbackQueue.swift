internal import Dispatch
internal import Foundation
internal import Synchronization

/// Where callbacks and delegate events are called, in order: the queue that the application sets, else the main queue.
///
/// The choice never depends on how busy the process is. If the main queue runs nothing for 5 s after the first callback,
/// one line on standard error says so, because an application without a main loop would otherwise hear nothing.
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
    ///   - grace: how long the main queue may be busy before `warn` is called, once.
    ///   - warn: called on a queue of the system.
    init(
        main: DispatchQueue = .main, grace: DispatchTimeInterval = .seconds(5),
        warn: @escaping @Sendable (String) -> Void = { FileHandle.standardError.write(Data("\($0)\n".utf8)) }
    ) {
        self.main = main
        self.grace = grace
        self.warn = warn
    }

    /// The application's own queue.
    var chosen: DispatchQueue? {
        get { state.withLock { $0.chosen } }
        set { state.withLock { $0.chosen = newValue } }
    }

    /// Calls it when its turn comes.
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
                "ConnectLiveSDK: callbacks wait, because nothing runs the main queue. Run a main loop (dispatchMain(), "
                    + "RunLoop.main.run() or an async main), or set ConnectLive.callbackQueue.")
        }
    }
}

/// Carries a callback of the application, which need not be Sendable, to the callback queue.
struct Callback<each Argument: Sendable>: @unchecked Sendable {
    // Sendable by hand: it is only called on the callback queue, one callback after the other, as the documentation
    // promises the application.
    private let body: (repeat each Argument) -> Void

    init(_ body: @escaping (repeat each Argument) -> Void) { self.body = body }

    func callAsFunction(_ argument: repeat each Argument) {
        let arguments = (repeat each argument)
        CallbackQueue.shared.run { body(repeat each arguments) }
    }
}

internal import Dispatch
internal import Synchronization

/// Where callbacks and delegate events are called, in order.
///
/// The application's own queue if it set one. Else the main queue, if something serves it: a main loop
/// (`dispatchMain()`, `RunLoop.main.run()`) or Swift's async main. That is found out once, when the SDK is first used:
/// a block is put on the main queue, and if it has not run within 100 ms the SDK keeps to a serial queue of its own.
final class CallbackQueue: Sendable {
    static let shared = CallbackQueue()

    private static let patience = DispatchTimeInterval.milliseconds(100)
    /// Events that wait for the application at most; whoever has one more must end what it tells of.
    static let capacity = 4096

    private struct State {
        var chosen: DispatchQueue?
        var decided: DispatchQueue?
        var isProbing = false
        /// What came before the decision, which takes 100 ms at most.
        var waiting: [@Sendable () -> Void] = []
        /// Callbacks that have not returned yet.
        var pending = 0
    }

    private let state = Mutex(State())
    private let own = DispatchQueue(label: "connectlive.callbacks")

    init() {}

    var chosen: DispatchQueue? {
        get { state.withLock { $0.chosen } }
        set {
            state.withLock { state in
                state.chosen = newValue
                if newValue != nil { Self.flush(&state) }
            }
        }
    }

    /// Starts finding out, so that the first callback need not wait for it.
    func prepare() {
        let begins = state.withLock { state in
            guard state.decided == nil, !state.isProbing else { return false }
            state.isProbing = true
            return true
        }
        guard begins else { return }
        DispatchQueue.main.async { self.decide(.main) }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { self.decide(self.own) }
    }

    /// Calls it when its turn comes. Without `mustRun` it is refused when `capacity` callbacks wait: false.
    @discardableResult
    func run(mustRun: Bool = true, _ callback: @escaping @Sendable () -> Void) -> Bool {
        prepare()
        return state.withLock { state in
            guard mustRun || state.pending < Self.capacity else { return false }
            state.pending += 1
            let counted: @Sendable () -> Void = {
                callback()
                self.state.withLock { $0.pending -= 1 }
            }
            if let queue = state.chosen ?? state.decided {
                queue.async(execute: counted)
            } else {
                state.waiting.append(counted)
            }
            return true
        }
    }

    private func decide(_ queue: DispatchQueue) {
        state.withLock { state in
            guard state.decided == nil else { return }
            state.decided = queue
            Self.flush(&state)
        }
    }

    private static func flush(_ state: inout State) {
        guard let queue = state.chosen ?? state.decided else { return }
        for callback in state.waiting { queue.async(execute: callback) }
        state.waiting = []
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

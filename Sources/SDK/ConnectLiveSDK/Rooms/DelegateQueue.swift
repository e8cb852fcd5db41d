internal import RoomProtocol
internal import Synchronization

/// Passes the events of one room to its delegate, in order, on the callback queue. It does not retain the delegate.
///
/// Two rules hold for calls on any thread: no event follows `onDisconnected`, and after `leave()` only `onDisconnected`
/// follows.
final class DelegateQueue: Sendable {
    /// How many events of a room may wait. One more ends the room.
    static let capacity = 4096

    private struct State {
        var waiting = 0
        var hasLeft = false
        var hasEnded = false
    }

    /// Sendable by hand: it never changes, reading a weak reference is atomic, and the delegate is called only on the
    /// callback queue.
    private struct Reference: @unchecked Sendable {
        weak let delegate: (any RoomDelegate)?
    }

    private let state = Mutex(State())
    private let reference: Reference
    private let queue: CallbackQueue

    init(_ delegate: any RoomDelegate, queue: CallbackQueue = .shared) {
        reference = Reference(delegate: delegate)
        self.queue = queue
    }

    /// Queues an event. Does nothing after `leave()` and `end(...)`. Returns false if `capacity` events wait.
    ///
    /// - Parameter event: called on the callback queue. The delegate is nil if the application has released it
    func tell(_ event: @escaping @Sendable ((any RoomDelegate)?) -> Void) -> Bool {
        // Queued under the lock, so that no event follows the last one.
        state.withLock { state in
            guard !state.hasLeft, !state.hasEnded else { return true }
            guard state.waiting < Self.capacity else { return false }
            state.waiting += 1
            queue.run { [self] in
                let isWanted = self.state.withLock { state in
                    state.waiting -= 1
                    return !state.hasLeft
                }
                if isWanted { event(reference.delegate) }
            }
            return true
        }
    }

    /// The application called `disconnect()`: waiting events are dropped.
    func leave() { state.withLock { $0.hasLeft = true } }

    /// Queues the error that ended the room, then `onDisconnected`. After `leave`, the error is omitted. A second end
    /// does nothing.
    func end(_ reason: DisconnectReason, _ error: RoomError?) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.hasEnded = true
            queue.run { [self] in
                guard let delegate = reference.delegate else { return }
                if let error, !self.state.withLock({ $0.hasLeft }) { delegate.onError(error, isCritical: true) }
                delegate.onDisconnected(reason: reason)
            }
        }
    }

    /// Queues the error of a call, even after the end.
    func answer(_ error: RoomError) {
        queue.run { [reference] in reference.delegate?.onError(error, isCritical: false) }
    }
}

extension RoomDelegate {
    func onError(_ error: RoomError, isCritical: Bool) {
        onError(code: error.code.number, message: error.sdkMessage, isCritical: isCritical)
    }
}

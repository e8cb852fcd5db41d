internal import RoomProtocol
internal import Synchronization

/// Hands the events of one room to its delegate, in order, on the callback queue. It does not keep the delegate alive.
///
/// Two rules hold on whatever threads the calls come: no event follows `onDisconnected`, and after `leave()` only
/// `onDisconnected` comes.
final class DelegateQueue: Sendable {
    /// Events of one room that may wait for the application. A room with one more has to end.
    static let capacity = 4096

    private struct State {
        var waiting = 0
        var hasLeft = false
        var hasEnded = false
    }

    /// Sendable by hand: it never changes, reading a weak reference is atomic, and what it refers to is only called on
    /// the callback queue.
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

    /// Queues an event; does nothing after `leave()` and `end(...)`. False when `capacity` events of this room wait.
    func tell(_ event: @escaping @Sendable (any RoomDelegate) -> Void) -> Bool {
        // Queued under the lock, so that no event slips behind the last one.
        state.withLock { state in
            guard !state.hasLeft, !state.hasEnded else { return true }
            guard state.waiting < Self.capacity else { return false }
            state.waiting += 1
            queue.run { [self] in
                let isWanted = self.state.withLock { state in
                    state.waiting -= 1
                    return !state.hasLeft
                }
                if isWanted, let delegate = reference.delegate { event(delegate) }
            }
            return true
        }
    }

    /// The application has called `disconnect()`: events that still wait are dropped.
    func leave() { state.withLock { $0.hasLeft = true } }

    /// Queues `onDisconnected`, and directly before it the error that ended the room. The application does not hear of
    /// an error once it has left. The second end of a room does nothing.
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

    /// Queues the error that answers a call, also after the end.
    func answer(_ error: RoomError) {
        queue.run { [reference] in reference.delegate?.onError(error, isCritical: false) }
    }
}

extension RoomDelegate {
    func onError(_ error: RoomError, isCritical: Bool) {
        onError(code: error.code.number, message: error.sdkMessage, isCritical: isCritical)
    }
}

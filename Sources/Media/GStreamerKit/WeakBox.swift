import Synchronization

/// A weak reference for closures, which may be set after they are made.
package final class WeakBox<Value: AnyObject & Sendable>: Sendable {
    private struct Weak: Sendable {
        weak var value: Value?
    }

    private let state: Mutex<Weak>

    package init(_ value: Value? = nil) {
        state = Mutex(Weak(value: value))
    }

    package func set(_ value: Value) {
        state.withLock { $0.value = value }
    }

    package var value: Value? { state.withLock { $0.value } }
}

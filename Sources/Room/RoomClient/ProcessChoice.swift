internal import Synchronization

/// A choice of the application that holds for the whole process, and the objects that follow it.
package final class ProcessChoice<Value: Sendable & Equatable>: Sendable {
    private struct State {
        var value: Value
        var observers: [ObjectIdentifier: @Sendable () -> Void] = [:]
    }

    private let state: Mutex<State>

    package init(_ value: Value) { state = Mutex(State(value: value)) }

    package var value: Value { state.withLock { $0.value } }

    /// Changes the choice, also for the objects that run. Changes of several threads follow one another.
    package func change(_ body: (inout Value) -> Void) {
        let observers = state.withLock { state -> [@Sendable () -> Void] in
            let former = state.value
            body(&state.value)
            return state.value == former ? [] : Array(state.observers.values)
        }
        for observer in observers { observer() }
    }

    /// - Parameter changed: called after each change, on the thread that made it.
    package func observe(as owner: AnyObject, _ changed: @escaping @Sendable () -> Void) {
        state.withLock { $0.observers[ObjectIdentifier(owner)] = changed }
    }

    package func stopObserving(as owner: AnyObject) {
        state.withLock { $0.observers[ObjectIdentifier(owner)] = nil }
    }
}

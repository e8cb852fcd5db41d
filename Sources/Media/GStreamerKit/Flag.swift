import Synchronization

/// A flag that several threads may set, to be captured by closures.
package final class Flag: Sendable {
    private let flag: Atomic<Bool>

    package init(_ value: Bool = false) {
        flag = Atomic(value)
    }

    /// Sets the flag and gives what it was: false for whoever is the first to raise it.
    package func exchange(_ new: Bool) -> Bool {
        flag.exchange(new, ordering: .acquiringAndReleasing)
    }

    package var value: Bool { flag.load(ordering: .acquiring) }

    package func raise() { _ = exchange(true) }
    package func lower() { _ = exchange(false) }
}

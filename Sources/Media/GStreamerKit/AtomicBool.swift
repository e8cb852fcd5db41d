import Synchronization

/// An atomic flag for closures.
package final class AtomicBool: Sendable {
    private let flag: Atomic<Bool>

    package init(_ value: Bool = false) {
        flag = Atomic(value)
    }

    /// Sets the flag and returns its previous value: false for the first caller that raises it.
    package func exchange(_ new: Bool) -> Bool {
        flag.exchange(new, ordering: .acquiringAndReleasing)
    }

    package var value: Bool { flag.load(ordering: .acquiring) }

    package func raise() { _ = exchange(true) }
    package func lower() { _ = exchange(false) }
}

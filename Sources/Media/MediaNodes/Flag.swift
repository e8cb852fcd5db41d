import Synchronization

/// A flag that several threads may set, to be captured by closures.
final class Flag: Sendable {
    private let value: Atomic<Bool>

    init(_ value: Bool = false) {
        self.value = Atomic(value)
    }

    /// Sets the flag and gives what it was.
    func exchange(_ new: Bool) -> Bool {
        value.exchange(new, ordering: .acquiringAndReleasing)
    }
}

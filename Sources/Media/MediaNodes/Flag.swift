import Synchronization

/// A flag that several threads may set, to be captured by closures.
final class Flag: Sendable {
    private let flag: Atomic<Bool>

    init(_ value: Bool = false) {
        flag = Atomic(value)
    }

    /// Sets the flag and gives what it was.
    func exchange(_ new: Bool) -> Bool {
        flag.exchange(new, ordering: .acquiringAndReleasing)
    }

    var value: Bool { flag.load(ordering: .acquiring) }

    func raise() { _ = exchange(true) }
    func lower() { _ = exchange(false) }
}

internal import Synchronization

/// The ids of streams, unique in a server's lifetime, for all of its loops. Callable on any thread.
package final class StreamNumbers: Sendable {
    private let issued = Atomic<Int>(0)

    package init() {}

    package func next() -> Int { issued.add(1, ordering: .relaxed).newValue }

    package func hasIssued(_ number: Int) -> Bool { number > 0 && number <= issued.load(ordering: .relaxed) }
}

import Synchronization

/// Counts gaps in sequence numbers. A camera numbers all frames, including those that it could not deliver.
final class NumberGaps: Sendable {
    private let state = Mutex((last: UInt64?.none, missing: 0))

    /// A number that does not increase means that the device restarted its count.
    func saw(_ number: UInt64) {
        state.withLock { state in
            if let last = state.last, number > last { state.missing += Int(clamping: number - last - 1) }
            state.last = number
        }
    }

    var missing: Int { state.withLock { $0.missing } }
}

import Synchronization

/// Counts what is missing from a row of numbers: a camera numbers its pictures, those too that it could not hand over.
final class NumberGaps: Sendable {
    private let state = Mutex((last: UInt64?.none, missing: 0))

    /// A number that is not larger than the last is that of a device which began to count anew.
    func saw(_ number: UInt64) {
        state.withLock { state in
            if let last = state.last, number > last { state.missing += Int(clamping: number - last - 1) }
            state.last = number
        }
    }

    var missing: Int { state.withLock { $0.missing } }
}

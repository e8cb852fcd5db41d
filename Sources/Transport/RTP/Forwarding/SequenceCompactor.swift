/// Renumbers a stream from which packets are left out on purpose, so that they leave no gap behind.
///
/// A gap can be closed only while nothing after it was sent. A packet that is left out late keeps its number.
struct SequenceCompactor: Sendable {
    /// Packets this far behind the newest no longer have a place.
    static let window = NumberWindow.standardLength

    private var leftOut: NumberWindow?
    private(set) var highest: Int
    /// Numbers left out so far, all of them up to `highest`.
    private var removed = 0

    /// `start` is the first number of the stream.
    init(start: Int) { highest = start - 1 }

    /// The packet's new number; nil when it has none.
    mutating func place(_ number: Int) -> Int? {
        if number > highest {
            advance(to: number)
            return number - removed
        }
        guard number > highest - Self.window else { return nil }
        guard let leftOut else { return number }
        guard !leftOut.contains(number) else { return nil }
        return number - removed + leftOut.count(above: number, upTo: highest)
    }

    /// Leaves the packet out. Returns its new number when it is too late for that: receivers wait for it.
    mutating func leaveOut(_ number: Int) -> Int? {
        guard number > highest else { return place(number) }
        advance(to: number)
        if leftOut == nil { leftOut = NumberWindow() }
        leftOut?.insert(number)
        removed += 1
        return nil
    }

    private mutating func advance(to number: Int) {
        leftOut?.remove((highest + 1)...number)
        highest = number
    }
}

/// Renumbers a stream with omitted packets, so that they leave no gap.
///
/// A gap can be closed only before a later packet is sent. A packet that is omitted later keeps its number.
struct SequenceCompactor: Sendable {
    /// Packets this far behind the newest have no number.
    static let window = NumberWindow.standardLength

    private var leftOut: NumberWindow?
    private(set) var highest: Int
    /// Numbers omitted so far, all of them up to `highest`.
    private var removed = 0

    /// `start` is the first number of the stream.
    init(start: Int) { highest = start - 1 }

    /// The packet's new number. Nil if it has none.
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

    /// Omits the packet. If it is too late, returns its new number, for which receivers wait.
    mutating func leaveOut(_ number: Int) -> Int? {
        guard number > highest else { return place(number) }
        advance(to: number)
        if leftOut == nil { leftOut = NumberWindow() }
        leftOut?.insert(number)
        removed += 1
        return nil
    }

    /// Whether the packet was omitted, as far as it is remembered.
    func hasLeftOut(_ number: Int) -> Bool {
        number <= highest && number > highest - Self.window && leftOut?.contains(number) == true
    }

    private mutating func advance(to number: Int) {
        leftOut?.remove((highest + 1)...number)
        highest = number
    }
}

/// Records which of the newest numbers were seen. The owner clears numbers as it advances.
package struct NumberWindow: Sendable {
    package static let standardLength = 2048

    private var words: [UInt64]

    /// `length` is a power of two, 64 or more.
    package init(length: Int = standardLength) { words = [UInt64](repeating: 0, count: length / 64) }

    package func contains(_ number: Int) -> Bool { words[place(of: number)] & bit(of: number) != 0 }

    package mutating func insert(_ number: Int) { words[place(of: number)] |= bit(of: number) }

    mutating func remove(_ number: Int) { words[place(of: number)] &= ~bit(of: number) }

    mutating func removeAll() {
        for index in words.indices { words[index] = 0 }
    }

    package mutating func remove(_ numbers: ClosedRange<Int>) {
        guard numbers.count < words.count * 64 else { return removeAll() }
        for number in numbers { remove(number) }
    }

    /// The recorded numbers above `number`, up to `highest`. The two are less than the window's length apart.
    func count(above number: Int, upTo highest: Int) -> Int {
        var count = 0
        var next = number + 1
        while next <= highest {
            let last = min(highest, next | 63)
            let mask = (UInt64.max >> UInt64(63 - (last - next))) << UInt64(next & 63)
            count += (words[place(of: next)] & mask).nonzeroBitCount
            next = last + 1
        }
        return count
    }

    private func place(of number: Int) -> Int { (number >> 6) & (words.count - 1) }

    private func bit(of number: Int) -> UInt64 { 1 << UInt64(number & 63) }
}

/// A queue whose memory is reused: after it has grown to the length that it needs, it allocates nothing. Before the first
/// element, it has no memory. Removed elements stay in it until others take their place.
struct Ring<Element>: Sendable where Element: Sendable {
    /// Their number is a power of two.
    private var slots: [Element] = []
    private let capacity: Int
    private var head = 0
    private(set) var count = 0

    /// - Parameter capacity: of its first memory, rounded up to a power of two
    init(capacity: Int = 8) {
        var rounded = 1
        while rounded < capacity { rounded *= 2 }
        self.capacity = rounded
    }

    var isEmpty: Bool { count == 0 }
    var first: Element? { count == 0 ? nil : slots[head] }
    var last: Element? { count == 0 ? nil : self[count - 1] }

    /// `index` is below `count`.
    subscript(index: Int) -> Element {
        get {
            precondition(index < count)
            return slots[place(index)]
        }
        _modify {
            precondition(index < count)
            yield &slots[place(index)]
        }
    }

    /// Calls the closure for each element, in order.
    @inline(__always)
    func forEach(_ body: (Element) -> Void) {
        let end = min(head + count, slots.count)
        for place in head..<end { body(slots[place]) }
        for place in 0..<head + count - end { body(slots[place]) }
    }

    mutating func append(_ element: Element) {
        if count == slots.count { grow(element) }
        slots[place(count)] = element
        count += 1
    }

    @discardableResult
    mutating func removeFirst() -> Element? {
        guard count > 0 else { return nil }
        defer {
            head = place(1)
            count -= 1
        }
        return slots[head]
    }

    private func place(_ index: Int) -> Int { (head + index) & (slots.count - 1) }

    /// - Parameter filler: fills the memory that has no element yet
    private mutating func grow(_ filler: Element) {
        var larger = [Element](repeating: filler, count: max(capacity, slots.count * 2))
        for index in 0..<count { larger[index] = self[index] }
        (slots, head) = (larger, 0)
    }
}

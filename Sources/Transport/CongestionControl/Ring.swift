/// A queue whose memory is reused: after it has grown to the length that it needs, it allocates nothing.
struct Ring<Element>: Sendable where Element: Sendable {
    private var slots: [Element?]
    private var head = 0
    private(set) var count = 0

    init(capacity: Int = 8) { slots = [Element?](repeating: nil, count: max(1, capacity)) }

    var isEmpty: Bool { count == 0 }
    var first: Element? { count == 0 ? nil : slots[head] }
    var last: Element? { count == 0 ? nil : self[count - 1] }

    /// `index` is below `count`.
    subscript(index: Int) -> Element {
        get {
            precondition(index < count)
            guard let element = slots[place(index)] else { preconditionFailure("an element is missing") }
            return element
        }
        set {
            precondition(index < count)
            slots[place(index)] = newValue
        }
    }

    mutating func append(_ element: Element) {
        if count == slots.count { double() }
        slots[place(count)] = element
        count += 1
    }

    /// Puts an element in front of all others.
    mutating func prepend(_ element: Element) {
        if count == slots.count { double() }
        head = head == 0 ? slots.count - 1 : head - 1
        slots[head] = element
        count += 1
    }

    @discardableResult
    mutating func removeFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = slots[head]
        slots[head] = nil
        head = head + 1 == slots.count ? 0 : head + 1
        count -= 1
        return element
    }

    mutating func removeAll() {
        while count > 0 { removeFirst() }
    }

    private func place(_ index: Int) -> Int {
        let place = head + index
        return place < slots.count ? place : place - slots.count
    }

    private mutating func double() {
        var larger = [Element?](repeating: nil, count: slots.count * 2)
        for index in 0..<count { larger[index] = self[index] }
        (slots, head) = (larger, 0)
    }
}

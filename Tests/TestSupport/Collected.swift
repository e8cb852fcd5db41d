import Synchronization

/// Values that arrive on other threads.
public final class Collected<Element: Sendable>: Sendable {
    private let state = Mutex<[Element]>([])

    public init() {}

    public func append(_ element: Element) { state.withLock { $0.append(element) } }
    public func removeAll() { state.withLock { $0.removeAll() } }
    public var all: [Element] { state.withLock { $0 } }
    public var count: Int { state.withLock { $0.count } }
}

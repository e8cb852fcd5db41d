import Synchronization

/// A closure that is called with each event of X while this value lives.
package final class XWatch<Event: Sendable>: Sendable {
    fileprivate let body: @Sendable (Event) -> Void

    fileprivate init(_ body: @escaping @Sendable (Event) -> Void) {
        self.body = body
    }
}

/// The watches of one kind of events.
final class XWatches<Event: Sendable>: Sendable {
    private let watches = Mutex<[WeakBox<XWatch<Event>>]>([])

    func add(_ body: @escaping @Sendable (Event) -> Void) -> XWatch<Event> {
        let watch = XWatch(body)
        watches.withLock { watches in watches = watches.filter { $0.value != nil } + [WeakBox(watch)] }
        return watch
    }

    func notify(_ event: Event) {
        for watch in watches.withLock({ $0.compactMap(\.value) }) { watch.body(event) }
    }
}

import Dispatch
import RoomProtocol
import Testing

@testable import ConnectLiveSDK

/// Which events reach a delegate. The queue is held, so that everything happens before the first is delivered.
@Suite struct DelegateQueueTests {
    private let main = DispatchQueue(label: "main", attributes: .initiallyInactive)
    private let callbacks: CallbackQueue
    private let listener = Listener()
    private let failure = RoomError(.connectionLost, "The connection was lost.")

    init() { callbacks = CallbackQueue(main: main) { _ in } }

    /// The events delivered when the queue ran.
    private var delivered: [String] {
        main.activate()
        main.sync {}
        return listener.names
    }

    private func enter(_ events: DelegateQueue) -> Bool { events.tell { $0?.onConnecting(progress: 33) } }

    @Test func `the error that ends a room precedes onDisconnected directly, and nothing follows`() {
        let events = DelegateQueue(listener, queue: callbacks)
        #expect(enter(events))
        events.end(.disconnected, failure)
        #expect(enter(events))
        events.end(.destroyed, nil)
        #expect(delivered == ["progress", "error", "disconnected"])
    }

    @Test func `after a disconnect only onDisconnected follows, not even waiting events`() {
        let events = DelegateQueue(listener, queue: callbacks)
        #expect(enter(events))
        events.leave()
        #expect(enter(events))
        events.end(.disconnected, failure)
        #expect(delivered == ["disconnected"])
    }

    @Test func `a room that ended before the application left is not an error`() {
        let events = DelegateQueue(listener, queue: callbacks)
        events.end(.disconnected, failure)
        events.leave()
        #expect(delivered == ["disconnected"])
    }

    @Test func `the backlog of one room does not affect another`() {
        let busy = DelegateQueue(listener, queue: callbacks)
        let other = DelegateQueue(listener, queue: callbacks)
        #expect((0..<DelegateQueue.capacity).allSatisfy { _ in enter(busy) })
        #expect(!enter(busy))
        #expect(enter(other))
        #expect(delivered.count == DelegateQueue.capacity + 1)
        #expect(enter(busy), "the backlog is gone")
    }
}

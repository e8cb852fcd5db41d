import Dispatch
import RoomProtocol
import TestSupport
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

    private func enter(_ events: DelegateQueue, replacing key: EventKey? = nil) -> Bool {
        events.tell(replacing: key) { $0.tell(.connecting(progress: 33)) }
    }

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

    @Test func `completions wait among the events, count like them, and follow the end`() {
        let events = DelegateQueue(listener, queue: callbacks)
        let completion = Callback({ listener.onError(code: $0, message: "", isCritical: false) }, among: events)
        #expect(enter(events))
        completion(1)
        #expect(enter(events))
        events.leave()
        events.end(.disconnected, nil)
        completion(2)
        #expect(delivered == ["error", "disconnected", "error"])
        let busy = DelegateQueue(
            listener, queue: CallbackQueue(main: DispatchQueue(label: "held", attributes: .initiallyInactive)) { _ in })
        for _ in 0..<DelegateQueue.capacity { busy.answer(failure) }
        #expect(!enter(busy) && !enter(busy, replacing: .loudspeaker))
    }

    @Test func `more completions than may wait end the room, and each is delivered`() async {
        let events = DelegateQueue(listener, queue: callbacks)
        let ended = Collected<Bool>()
        events.setOverflow {
            events.end(.disconnected, nil)
            ended.append(true)
        }
        for _ in 0..<DelegateQueue.capacity { events.answer(failure) }
        #expect(ended.all.isEmpty)
        events.answer(failure)
        await eventually("the end of the room") { !ended.all.isEmpty }
        events.answer(failure)
        let delivered = delivered
        #expect(delivered.filter { $0 == "error" }.count == DelegateQueue.capacity + 2)
        #expect(delivered.filter { $0 == "disconnected" }.count == 1)
    }
}

/// The order and the merging of waiting events.
@Suite struct EventBacklogTests {
    private final class Log: Sendable {
        private let texts = Collected<String>()

        func note(_ text: String) -> @Sendable () -> Void { { [texts] in texts.append(text) } }

        func run(_ backlog: inout EventBacklog<@Sendable () -> Void>) -> [String] {
            let end = backlog.beginTurn()
            while let entry = backlog.next(before: end) { entry.body?() }
            defer { texts.removeAll() }
            return texts.all
        }
    }

    private let log = Log()

    private func add(_ text: String, _ key: EventKey? = nil, to backlog: inout EventBacklog<@Sendable () -> Void>) {
        if let key, backlog.replace(key, with: log.note(text)) { return }
        _ = backlog.append(log.note(text), key)
    }

    private func delivered(_ events: [(String, EventKey?)]) -> [String] {
        var backlog = EventBacklog<@Sendable () -> Void>()
        for (text, key) in events { add(text, key, to: &backlog) }
        return log.run(&backlog)
    }

    @Test func `a later event of a kind takes the place of the waiting one`() {
        #expect(
            delivered([
                ("away", .loudspeaker), ("waits", .state(7)), ("back", .loudspeaker), ("live", .state(8)),
                ("live", .state(7)),
            ])
                == ["back", "live", "live"])
        #expect(
            delivered([("a", .state(7)), ("b", .quality(7)), ("c", .loudspeaker), ("d", .quality(7))]) == [
                "a", "d", "c",
            ])
    }

    @Test func `an event that is always reported keeps its place between others`() {
        #expect(
            delivered([("away", .loudspeaker), ("entered", nil), ("back", .loudspeaker)]) == [
                "away", "entered", "back",
            ])
    }

    @Test func `two slot events of a stream are none, and a third one counts`() {
        #expect(delivered([("on", .slot(7)), ("off", .slot(7))]) == [])
        #expect(delivered([("off", .slot(7)), ("on 8", .slot(8)), ("on", .slot(7))]) == ["on 8"])
        #expect(
            delivered([("on", .slot(7)), ("on 8", .slot(8)), ("off", .slot(7)), ("on", .slot(7))]) == ["on", "on 8"])
        #expect(delivered([("on", .slot(7)), ("published", nil), ("off", .slot(7))]) == ["on", "published", "off"])
    }

    @Test func `an event that is being delivered is not replaced, and later ones need another turn`() {
        var backlog = EventBacklog<@Sendable () -> Void>()
        let first = backlog.append(log.note("a"), .loudspeaker)
        let second = backlog.append(log.note("b"), nil)
        #expect(first && !second)
        let end = backlog.beginTurn()
        backlog.next(before: end)?.body?()
        let isReplaced = backlog.replace(.loudspeaker, with: log.note("late"))
        let needsTurn = backlog.append(log.note("c"), .loudspeaker)
        #expect(!isReplaced && needsTurn && backlog.count == 2)
        while let entry = backlog.next(before: end) { entry.body?() }
        #expect(backlog.count == 1)
        #expect(log.run(&backlog) == ["a", "b", "c"])
    }
}

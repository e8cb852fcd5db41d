import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import ConnectLiveSDK

/// The queues of callbacks. They are the tests' own, held and released in a fixed order.
@Suite struct CallbackQueueTests {
    /// The tests' own clock: the time that a main queue may be busy ends when a test says so.
    private final class Grace: Sendable {
        private let pending = Mutex<[@Sendable () -> Void]>([])

        func wait(_ body: @escaping @Sendable () -> Void) { pending.withLock { $0.append(body) } }

        /// How many waits end.
        @discardableResult func end() -> Int {
            let ended = pending.withLock { pending in
                defer { pending = [] }
                return pending
            }
            for body in ended { body() }
            return ended.count
        }
    }

    private static func heldQueue(_ name: String) -> DispatchQueue {
        DispatchQueue(label: name, attributes: .initiallyInactive)
    }

    @Test func `callbacks wait for a busy main queue, and one warning names both remedies`() {
        let (main, grace, warnings) = (Self.heldQueue("main"), Grace(), Collected<String>())
        let callbacks = CallbackQueue(main: main, later: grace.wait) { warnings.append($0) }
        let called = Collected<Int>()
        for number in 0..<3 { callbacks.run { called.append(number) } }
        #expect(warnings.count == 0)
        #expect(grace.end() == 1)
        #expect(warnings.all.map { $0.contains("main loop") && $0.contains("ConnectLive.callbackQueue") } == [true])
        callbacks.run { called.append(3) }
        #expect(grace.end() == 0 && warnings.count == 1)
        #expect(called.all == [])
        main.activate()
        main.sync {}
        #expect(called.all == [0, 1, 2, 3])
    }

    @Test(arguments: [false, true])
    func `a main queue that runs callbacks and is then blocked for good is reported`(
        isBlockedBeforeTheReview: Bool
    ) {
        let (main, grace, warnings) = (DispatchQueue(label: "main"), Grace(), Collected<String>())
        let callbacks = CallbackQueue(main: main, later: grace.wait) { warnings.append($0) }
        callbacks.run {}
        main.sync {}
        if !isBlockedBeforeTheReview { #expect(grace.end() == 1) }
        main.suspend()
        defer { main.resume() }
        callbacks.run {}
        if isBlockedBeforeTheReview { #expect(grace.end() == 1) }
        #expect(warnings.count == 0)
        #expect(grace.end() == 1 && warnings.count == 1)
    }

    @Test func `a main queue that runs all callbacks is not reported, and watched only while callbacks come`() {
        let (main, grace, warnings) = (DispatchQueue(label: "main"), Grace(), Collected<String>())
        let callbacks = CallbackQueue(main: main, later: grace.wait) { warnings.append($0) }
        for _ in 0..<3 {
            callbacks.run {}
            callbacks.run {}
            main.sync {}
            #expect(grace.end() == 1)
            main.sync {}
            #expect(grace.end() == 1)
            #expect(grace.end() == 0)
        }
        #expect(warnings.count == 0)
    }

    @Test func `callbacks run on the application's queue once it is set`() {
        let own = DispatchQueue(label: "own")
        let callbacks = CallbackQueue(main: DispatchQueue(label: "main")) { _ in }
        callbacks.chosen = own
        let key = DispatchSpecificKey<Bool>()
        own.setSpecific(key: key, value: true)
        let isOnOwn = Mutex(false)
        callbacks.run { isOnOwn.withLock { $0 = DispatchQueue.getSpecific(key: key) == true } }
        own.sync {}
        #expect(isOnOwn.withLock { $0 })
    }
}

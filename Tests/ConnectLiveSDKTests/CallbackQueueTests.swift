import Dispatch
import Synchronization
import Testing

@testable import ConnectLiveSDK

/// The queues of callbacks. They are the tests' own, held and released in a fixed order.
@Suite struct CallbackQueueTests {
    private static func heldQueue(_ name: String) -> DispatchQueue {
        DispatchQueue(label: name, attributes: .initiallyInactive)
    }

    @Test func `callbacks wait for a busy main queue`() async {
        let main = Self.heldQueue("main")
        let (warnings, continuation) = AsyncStream<String>.makeStream()
        let callbacks = CallbackQueue(main: main, grace: .nanoseconds(0)) { continuation.yield($0) }
        let called = Mutex<[Int]>([])
        for number in 0..<3 { callbacks.run { called.withLock { $0.append(number) } } }
        // The grace is over, and one warning names both remedies.
        var iterator = warnings.makeAsyncIterator()
        let warning = await iterator.next()
        #expect(warning?.contains("main loop") == true)
        #expect(warning?.contains("ConnectLive.callbackQueue") == true)
        #expect(called.withLock { $0 } == [])
        main.activate()
        main.sync {}
        #expect(called.withLock { $0 } == [0, 1, 2])
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

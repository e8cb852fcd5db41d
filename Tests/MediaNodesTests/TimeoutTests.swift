import Dispatch
import GStreamerKit
import Testing

@testable import MediaNodes

extension MediaNodesTests {
    @Suite struct TimeoutTests {
        private final class Held: Sendable {}

        private let queue = DispatchQueue(label: "test.timeouts")

        @Test("A timeout runs its action once, and again if it is set again")
        func fires() async {
            let count = Collected<Int>()
            let timeout = Timeout(at: .now(), on: queue) { timeout in
                count.append(count.count)
                if count.count < 3 { timeout.set(.now()) }
            }
            await eventually("three times") { count.count == 3 }
            withExtendedLifetime(timeout) {}
        }

        @Test("A cancelled or released timeout does nothing, and releases its closure")
        func cancelled() async {
            let hasFired = AtomicBool()
            weak var held: Held?
            queue.suspend()
            let cancelled = {
                let new = Held()
                held = new
                let body: @Sendable (Timeout) -> Void = { _ in withExtendedLifetime(new) { hasFired.raise() } }
                _ = Timeout(at: .now(), on: queue, body)
                return Timeout(at: .now(), on: queue, body)
            }()
            cancelled.cancel()
            queue.resume()
            await eventually("nothing holds it") { held == nil }
            #expect(!hasFired.value)
            withExtendedLifetime(cancelled) {}
        }
    }
}

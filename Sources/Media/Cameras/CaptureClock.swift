internal import CV4L2
import Synchronization

/// The clock of recorded cameras: the machine's, or one that a test moves. Any thread.
package final class CaptureClock: Sendable {
    private let isVirtual: Bool
    private let time: Mutex<Duration>

    private init(isVirtual: Bool, _ start: Duration) {
        self.isVirtual = isVirtual
        time = Mutex(start)
    }

    /// `CLOCK_MONOTONIC`
    package static let monotonic = CaptureClock(isVirtual: false, .zero)

    /// A clock that stands still. A wait moves it to the wait's end at once.
    package convenience init(virtualFrom start: Duration = .seconds(1000)) {
        self.init(isVirtual: true, start)
    }

    package var now: Duration { isVirtual ? time.withLock { $0 } : monotonicTime() }

    /// Lets time pass on a virtual clock.
    package func advance(by duration: Duration) {
        precondition(isVirtual && duration >= .zero)
        time.withLock { $0 += duration }
    }

    /// Waits until a time, or until the waker is used.
    func wait(until end: Duration, _ waker: Waker) {
        if isVirtual {
            time.withLock { $0 = max($0, end) }
        } else {
            _ = cv4l2_wait(-1, waker.number, nanoseconds(max(end - now, .zero)))
        }
    }
}

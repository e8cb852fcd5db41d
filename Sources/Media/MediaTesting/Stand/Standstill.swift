import Dispatch
import Glibc
import MediaAuthoring
import Synchronization

/// Measures for how long the machine ran nothing, by the delays of a thread with short sleeps.
final class Standstill: Sendable {
    private static let nap: UInt32 = 5_000
    /// Delays up to this many seconds are normal on a busy machine.
    private static let unremarkable = 0.02

    private let sum = Mutex(0.0)

    init() {
        DispatchQueue(label: "media.testing.standstill").async { [weak self] in
            while self != nil {
                let begin = MediaTime.current
                usleep(Self.nap)
                let late = MediaTime.current.seconds(since: begin) - Double(Self.nap) / 1e6
                if late > Self.unremarkable { self?.sum.withLock { $0 += late } }
            }
        }
    }

    var seconds: Double { sum.withLock { $0 } }
}

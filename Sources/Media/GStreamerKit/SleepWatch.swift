import Dispatch
import Synchronization

/// Follows when the machine goes to sleep, as logind reports it on the D-Bus. Without a bus, it reports nothing.
package final class SleepWatch: Sendable {
    private static let service = "org.freedesktop.login1"
    private static let member = "PrepareForSleep"

    /// Calls block, so they have a queue.
    private let queue = DispatchQueue(label: "media.sleep")
    private let connection = Mutex<BusConnection?>(nil)

    /// Follows the machine until the value is released.
    ///
    /// - Parameter changed: gets true when the machine is about to sleep, and false when it is awake. Called on a queue of the
    ///   watch.
    package init(changed: @escaping @Sendable (Bool) -> Void) {
        queue.async { [weak self, queue] in
            let made = BusConnection(
                .system,
                wants: { origin in
                    origin.member == Self.member && origin.interface == "\(Self.service).Manager"
                        && origin.path == "/org/freedesktop/login1"
                },
                receive: { signal in
                    if let isSleeping = signal.body.first?.flag { queue.async { changed(isSleeping) } }
                })
            guard let self, let made else { return }
            connection.withLock { $0 = made }
            made.match("type='signal',sender='\(Self.service)',member='\(Self.member)'")
        }
    }

    deinit {
        guard let connection = connection.withLock({ $0 }) else { return }
        queue.async { connection.close() }
    }
}

import Dispatch
import Synchronization

/// Follows when the machine goes to sleep, as logind reports it on the D-Bus. Without a bus, it reports nothing.
package final class SleepWatch: Sendable {
    private static let service = "org.freedesktop.login1"
    private static let path = "/org/freedesktop/login1"
    private static let manager = "\(service).Manager"
    private static let member = "PrepareForSleep"
    private static let bus = "org.freedesktop.DBus"

    private struct State {
        var connection: BusConnection?
        var isAsleep = false
    }

    /// The name of logind's connection.
    private final class Owner: Sendable {
        let value = Mutex<String?>(nil)
    }

    /// Calls block, so they have a queue.
    private let queue = DispatchQueue(label: "media.sleep")
    private let state = Mutex(State())
    private let owner = Owner()
    /// Between two checks whether the bus has ended, in seconds. GIO reports that only to a main loop.
    private let pause: Double
    private let changed: @Sendable (Bool) -> Void

    /// Follows the machine until the value is released.
    ///
    /// - Parameters:
    ///   - pause: how long the end of the bus may stay unnoticed, and passes between two attempts to connect again, in seconds.
    ///   - changed: gets true when the machine is about to sleep, and false when it is awake, or logind or the bus has ended.
    ///     Called on a queue of the watch.
    package init(pause: Double = 5, changed: @escaping @Sendable (Bool) -> Void) {
        (self.pause, self.changed) = (pause, changed)
        queue.async { [weak self] in
            guard let self else { return }
            open()
            if isOpen { checkLater() }
        }
    }

    deinit {
        guard let connection = state.withLock({ $0.connection }) else { return }
        queue.async { connection.close() }
    }

    private var isOpen: Bool { state.withLock { $0.connection }?.isClosed == false }

    // MARK: - On the queue

    private func open() {
        let made = BusConnection(
            .system,
            wants: { [owner] origin in
                switch origin.member {
                case "NameOwnerChanged": origin.sender == Self.bus
                case Self.member:
                    origin.sender == owner.value.withLock { $0 } && origin.interface == Self.manager
                        && origin.path == Self.path
                default: false
                }
            },
            receive: { [weak self, queue] signal in
                queue.async { [weak self] in self?.take(signal) }
            })
        state.withLock { $0.connection = made }
        guard let made else { return }
        made.match("type='signal',sender='\(Self.service)',member='\(Self.member)'")
        made.match("type='signal',sender='\(Self.bus)',member='NameOwnerChanged',arg0='\(Self.service)'")
        meet()
    }

    /// Opens again when the bus has ended.
    private func checkLater() {
        queue.asyncAfter(deadline: .now() + pause) { [weak self] in
            guard let self else { return }
            if !isOpen {
                report(false)
                open()
            }
            checkLater()
        }
    }

    /// Everybody may send signals that look like logind's, so its connection has to be known.
    private func meet() {
        guard let connection = state.withLock({ $0.connection }) else { return }
        let name = connection.owner(of: Self.service)
        owner.value.withLock { $0 = name }
        // It may have reported the sleep before.
        let reply = name.flatMap {
            connection.call(
                $0, Self.path, "\(Self.bus).Properties", "Get", [.text(Self.manager), .text("PreparingForSleep")],
                within: 1000)
        }
        report(reply?.values.first?.flag ?? false)
    }

    private func take(_ signal: BusConnection.Signal) {
        if signal.origin.member == Self.member {
            if let isAsleep = signal.body.first?.flag { report(isAsleep) }
        } else if signal.body.first?.text == Self.service {
            meet()
        }
    }

    private func report(_ isAsleep: Bool) {
        let isNews = state.withLock { state in
            defer { state.isAsleep = isAsleep }
            return state.isAsleep != isAsleep
        }
        if isNews { changed(isAsleep) }
    }
}

import Dispatch
import Synchronization

/// The machine's sensor of direction, as iio-sensor-proxy offers it on the D-Bus. Without a bus, without the service and
/// without a sensor, it reports nothing, until the service appears.
package final class OrientationSensor: Sendable {
    private static let service = "net.hadess.SensorProxy"
    private static let path = "/net/hadess/SensorProxy"
    private static let property = "AccelerometerOrientation"
    private static let bus = "org.freedesktop.DBus"
    /// In milliseconds, for the start of the service.
    private static let patience: Int32 = 5000

    /// Calls block, so they have a queue.
    private let queue = DispatchQueue(label: "media.orientation")
    private let connection = Mutex<BusConnection?>(nil)
    private let changed: @Sendable (String) -> Void
    private let owner = Owner()

    /// The name of the service's connection.
    private final class Owner: Sendable {
        let value = Mutex<String?>(nil)
    }

    /// Follows the sensor until the value is released.
    ///
    /// - Parameters:
    ///   - address: that of the bus; nil for the system's.
    ///   - changed: gets the side that is up, at first and after each change: `normal`, `left-up`, `right-up` or `bottom-up`.
    ///     Called on a queue of the sensor.
    package init(address: String? = nil, changed: @escaping @Sendable (String) -> Void) {
        self.changed = changed
        queue.async { [weak self] in self?.open(address) }
    }

    deinit {
        guard let connection = connection.withLock({ $0 }) else { return }
        queue.async { connection.close() }
    }

    private func open(_ address: String?) {
        guard
            let made = BusConnection(
                address.map { .address($0) } ?? .system,
                wants: { [owner] origin in
                    switch origin.member {
                    case "NameOwnerChanged": origin.sender == Self.bus
                    case "PropertiesChanged": origin.sender == owner.value.withLock { $0 } && origin.path == Self.path
                    default: false
                    }
                },
                receive: { [weak self, queue] signal in
                    queue.async { [weak self] in self?.take(signal) }
                })
        else { return }
        connection.withLock { $0 = made }
        made.match("type='signal',sender='\(Self.service)',path='\(Self.path)'")
        made.match("type='signal',sender='\(Self.bus)',member='NameOwnerChanged',arg0='\(Self.service)'")
        claim()
    }

    /// The sensor runs while somebody has claimed it.
    private func claim() {
        guard let connection = connection.withLock({ $0 }),
            connection.call(Self.service, Self.path, Self.service, "ClaimAccelerometer", [], within: Self.patience)
                != nil
        else { return }
        // Everybody may send signals that look like the sensor's.
        let name = connection.owner(of: Self.service)
        owner.value.withLock { $0 = name }
        guard
            let reply = connection.call(
                Self.service, Self.path, "\(Self.bus).Properties", "Get", [.text(Self.service), .text(Self.property)],
                within: Self.patience),
            let side = reply.values.first?.text
        else { return }
        changed(side)
    }

    private func take(_ signal: BusConnection.Signal) {
        switch (signal.origin.member, signal.body.count) {
        // The service has begun to run, if it has an owner now.
        case ("NameOwnerChanged", 3):
            if signal.body[0].text == Self.service, signal.body[2].text?.isEmpty == false { claim() }
        case ("PropertiesChanged", 3):
            if let side = signal.body[1].table?[Self.property]?.text { changed(side) }
        default: break
        }
    }
}

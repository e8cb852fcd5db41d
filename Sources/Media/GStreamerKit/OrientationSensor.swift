internal import CGLib
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
                address,
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
                != nil,
            let side = connection.call(
                Self.service, Self.path, "\(Self.bus).Properties", "Get", [Self.service, Self.property],
                within: Self.patience)
        else { return }
        changed(side)
    }

    private func take(_ signal: BusConnection.Signal) {
        switch signal {
        case .changed(let properties): if let side = properties[Self.property] { changed(side) }
        case .appeared: claim()
        }
    }
}

/// A connection to a D-Bus.
// @unchecked: GIO's connections are thread-safe.
private final class BusConnection: @unchecked Sendable {
    enum Signal: Sendable {
        /// The texts among the changed properties of an object.
        case changed([String: String])
        /// A service has begun to run.
        case appeared
    }

    private typealias Receiver = Box<@Sendable (Signal) -> Void>

    private let pointer: OpaquePointer

    /// Nil without a bus. Blocks.
    ///
    /// - Parameter receive: called on a thread of GIO.
    init?(_ address: String?, receive: @escaping @Sendable (Signal) -> Void) {
        register_socket_types()
        var found = address
        if found == nil, let text = g_dbus_address_get_for_bus_sync(G_BUS_TYPE_SYSTEM, nil, nil) {
            found = String(cString: text)
            g_free(text)
        }
        let flags = GDBusConnectionFlags(
            rawValue: G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT.rawValue
                | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION.rawValue)
        guard let found, let pointer = g_dbus_connection_new_for_address_sync(found, flags, nil, nil, nil) else {
            return nil
        }
        self.pointer = pointer
        // A filter needs no main loop.
        _ = g_dbus_connection_add_filter(
            pointer,
            { _, message, isIncoming, data in
                if isIncoming != 0, let message, let signal = BusConnection.signal(message) {
                    Receiver.value(at: data)?(signal)
                }
                return message
            }, Receiver(receive).retained, releaseBox)
    }

    deinit { g_object_unref(UnsafeMutableRawPointer(pointer)) }

    func close() { _ = g_dbus_connection_close_sync(pointer, nil, nil) }

    /// Asks the bus for signals.
    func match(_ rule: String) {
        _ = call(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch", [rule], within: 1000)
    }

    /// Calls a method with texts, and returns the text of the reply; an empty one for a reply without a text. Nil if it fails.
    func call(
        _ service: String, _ path: String, _ interface: String, _ method: String, _ texts: [String],
        within milliseconds: Int32
    ) -> String? {
        let parameters = texts.map { g_variant_new_string($0) }
        let tuple = g_variant_new_tuple(parameters, gsize(parameters.count))
        guard
            let reply = g_dbus_connection_call_sync(
                pointer, service, path, interface, method, tuple, nil, G_DBUS_CALL_FLAGS_NONE, milliseconds, nil, nil)
        else { return nil }
        defer { g_variant_unref(reply) }
        guard g_variant_n_children(reply) > 0, let first = g_variant_get_child_value(reply, 0) else { return "" }
        defer { g_variant_unref(first) }
        return Self.text(first) ?? ""
    }

    /// A text, or the text of a variant.
    private static func text(_ value: OpaquePointer) -> String? {
        if g_variant_is_of_type(value, kind("v")) != 0 {
            guard let inner = g_variant_get_variant(value) else { return nil }
            defer { g_variant_unref(inner) }
            return text(inner)
        }
        guard g_variant_is_of_type(value, kind("s")) != 0 else { return nil }
        return g_variant_get_string(value, nil).map { String(cString: $0) }
    }

    private static func kind(_ text: StaticString) -> OpaquePointer? {
        text.withUTF8Buffer { OpaquePointer($0.baseAddress) }
    }

    private static func signal(_ message: OpaquePointer) -> Signal? {
        guard g_dbus_message_get_message_type(message) == G_DBUS_MESSAGE_TYPE_SIGNAL,
            let member = g_dbus_message_get_member(message), let body = g_dbus_message_get_body(message)
        else { return nil }
        switch String(cString: member) {
        case "NameOwnerChanged" where g_variant_is_of_type(body, kind("(sss)")) != 0:
            guard let owner = g_variant_get_child_value(body, 2) else { return nil }
            defer { g_variant_unref(owner) }
            return text(owner)?.isEmpty == false ? .appeared : nil
        case "PropertiesChanged" where g_variant_is_of_type(body, kind("(sa{sv}as)")) != 0:
            guard let changes = g_variant_get_child_value(body, 1) else { return nil }
            defer { g_variant_unref(changes) }
            var properties: [String: String] = [:]
            for index in 0..<g_variant_n_children(changes) {
                guard let entry = g_variant_get_child_value(changes, index) else { continue }
                defer { g_variant_unref(entry) }
                guard let key = g_variant_get_child_value(entry, 0), let value = g_variant_get_child_value(entry, 1)
                else { continue }
                defer {
                    g_variant_unref(key)
                    g_variant_unref(value)
                }
                if let key = text(key), let value = text(value) { properties[key] = value }
            }
            return .changed(properties)
        default: return nil
        }
    }
}

internal import CGLib
internal import Glibc
import Synchronization

/// A connection to a D-Bus, which needs no main loop.
// @unchecked: GIO's connections are thread-safe.
package final class BusConnection: @unchecked Sendable {
    /// The origin of a signal. The bus states the sender; the others are the sender's.
    package struct Origin: Sendable {
        /// The unique name of the sender, or `org.freedesktop.DBus` for the bus.
        package let sender: String
        package let path: String
        package let interface: String
        package let member: String
    }

    package struct Signal: Sendable {
        package let origin: Origin
        package let body: [BusValue]
    }

    package enum Bus: Sendable {
        case system
        case session
        case address(String)
    }

    /// A call's reply.
    package struct Reply: Sendable {
        package let values: [BusValue]
        /// Open descriptors, which the receiver closes.
        package let descriptors: [Int32]
    }

    private struct Listener: Sendable {
        let wants: @Sendable (Origin) -> Bool
        let receive: @Sendable (Signal) -> Void
    }

    private static let bus = "org.freedesktop.DBus"

    private let pointer: OpaquePointer

    /// Nil without such a bus. Blocks.
    ///
    /// Both functions are called on a thread of GIO, and must not call.
    ///
    /// - Parameters:
    ///   - wants: whether a signal is for this program. Others may come, too, also without a `match`: everybody on the bus may send
    ///     some.
    ///   - receive: gets the wanted ones.
    package init?(
        _ bus: Bus, wants: @escaping @Sendable (Origin) -> Bool, receive: @escaping @Sendable (Signal) -> Void
    ) {
        register_socket_types()
        let flags = GDBusConnectionFlags(
            rawValue: G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT.rawValue
                | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION.rawValue)
        guard let address = Self.address(of: bus),
            let pointer = g_dbus_connection_new_for_address_sync(address, flags, nil, nil, nil)
        else { return nil }
        self.pointer = pointer
        // A filter, unlike a subscription, needs no main loop.
        _ = g_dbus_connection_add_filter(
            pointer,
            { _, message, isIncoming, data in
                guard isIncoming != 0, let message, let listener = Box<Listener>.value(at: data),
                    let origin = BusConnection.origin(of: message), listener.wants(origin)
                else { return message }
                let body = g_dbus_message_get_body(message).map { BusValue($0).list ?? [] } ?? []
                listener.receive(Signal(origin: origin, body: body))
                return message
            }, Box(Listener(wants: wants, receive: receive)).retained, releaseBox)
    }

    private static func address(of bus: Bus) -> String? {
        let kind: GBusType
        switch bus {
        case .address(let address): return address
        case .system: kind = G_BUS_TYPE_SYSTEM
        case .session: kind = G_BUS_TYPE_SESSION
        }
        guard let text = g_dbus_address_get_for_bus_sync(kind, nil, nil) else { return nil }
        defer { g_free(text) }
        return String(cString: text)
    }

    deinit { g_object_unref(UnsafeMutableRawPointer(pointer)) }

    package func close() { _ = g_dbus_connection_close_sync(pointer, nil, nil) }

    /// Whether it was closed, or the bus has ended.
    package var isClosed: Bool { g_dbus_connection_is_closed(pointer) != 0 }

    /// The name that the bus has given to this connection, such as `:1.42`.
    package var name: String { g_dbus_connection_get_unique_name(pointer).map { String(cString: $0) } ?? "" }

    /// Asks the bus for signals.
    package func match(_ rule: String) {
        _ = call(Self.bus, "/org/freedesktop/DBus", Self.bus, "AddMatch", [.text(rule)], within: 1000)
    }

    /// Calls a method. Nil if it fails, or takes longer. Blocks.
    package func call(
        _ service: String, _ path: String, _ interface: String, _ method: String, _ values: [BusValue],
        within milliseconds: Int32
    ) -> Reply? {
        let parameters = values.map(\.variant)
        var found: UnsafeMutablePointer<GUnixFDList>?
        let reply = g_dbus_connection_call_with_unix_fd_list_sync(
            pointer, service, path, interface, method, g_variant_new_tuple(parameters, gsize(parameters.count)), nil,
            G_DBUS_CALL_FLAGS_NONE, milliseconds, nil, &found, nil, nil)
        defer { if let found { g_object_unref(UnsafeMutableRawPointer(found)) } }
        guard let reply else { return nil }
        defer { g_variant_unref(reply) }
        var descriptors: [Int32] = []
        if let found {
            var count: Int32 = 0
            // The list gives up its descriptors.
            if let all = g_unix_fd_list_steal_fds(found, &count) {
                descriptors = (0..<Int(count)).map { all[$0] }
                g_free(all)
            }
        }
        return Reply(values: BusValue(reply).list ?? [], descriptors: descriptors)
    }

    /// The unique name of the connection that offers a service. Nil if there is none.
    package func owner(of service: String) -> String? {
        call(Self.bus, "/org/freedesktop/DBus", Self.bus, "GetNameOwner", [.text(service)], within: 1000)?
            .values.first?.text
    }

    private static func origin(of message: OpaquePointer) -> Origin? {
        guard g_dbus_message_get_message_type(message) == G_DBUS_MESSAGE_TYPE_SIGNAL,
            let sender = g_dbus_message_get_sender(message), let path = g_dbus_message_get_path(message),
            let interface = g_dbus_message_get_interface(message), let member = g_dbus_message_get_member(message)
        else { return nil }
        return Origin(
            sender: String(cString: sender), path: String(cString: path), interface: String(cString: interface),
            member: String(cString: member))
    }
}

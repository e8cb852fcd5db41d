import Dispatch
internal import Glibc
import Synchronization

/// Asks the desktop which screen to share, by its portal (org.freedesktop.portal.ScreenCast), and gets a connection to
/// PipeWire that has this screen alone.
package final class ScreenPortal: Sendable {
    package enum Failure: Error, Sendable, Equatable {
        /// There is no session bus, or no portal on it.
        case absent
        /// The user has closed the dialog.
        case refused
        /// The portal responded to this call with an error, or not in time.
        case failed(String)
    }

    private static let service = "org.freedesktop.portal.Desktop"
    private static let object = "/org/freedesktop/portal/desktop"
    private static let interface = "org.freedesktop.portal.ScreenCast"
    /// The time for a reply, in milliseconds.
    private static let patience: Int32 = 10_000

    /// The node of PipeWire that delivers the screen.
    package let node: UInt32
    /// In pixels. Nil if the portal does not tell.
    package let size: (width: Int, height: Int)?
    /// The connection to PipeWire. It stays open until this value is released, which also ends the share.
    package let descriptor: Int32
    private let connection: BusConnection

    private init(_ node: UInt32, _ size: (width: Int, height: Int)?, _ descriptor: Int32, _ connection: BusConnection) {
        (self.node, self.size, self.descriptor, self.connection) = (node, size, descriptor, connection)
    }

    deinit {
        close(descriptor)
        connection.close()
    }

    /// Shows the desktop's dialog, and waits for the user's choice. Blocks.
    ///
    /// - Parameters:
    ///   - bus: that of the session unless a test has another one.
    ///   - showsPointer: whether frames include the mouse pointer.
    ///   - seconds: how long the user has.
    ///   - isCancelled: asked several times a second.
    package static func choose(
        on bus: BusConnection.Bus = .session, showsPointer: Bool = true, within seconds: Double = 300,
        isCancelled: @escaping () -> Bool = { false }
    ) throws(Failure) -> ScreenPortal {
        let responses = Responses()
        guard
            let connection = BusConnection(
                bus, wants: { responses.wants($0) }, receive: { responses.take($0) })
        else { throw .absent }
        connection.match(
            "type='signal',sender='\(service)',interface='org.freedesktop.portal.Request',member='Response'")
        let dialog = Dialog(
            connection: connection, responses: responses, deadline: .now() + seconds, isCancelled: isCancelled)
        let isThere = connection.call(
            service, object, "org.freedesktop.DBus.Properties", "Get", [.text(interface), .text("version")],
            within: patience)
        guard isThere != nil, let owner = connection.owner(of: service) else { throw .absent }
        responses.expect(from: owner)
        let session = try dialog.request("CreateSession", [], ["session_handle_token": .text("connectlive")])
        guard let handle = session["session_handle"]?.text else { throw .failed("CreateSession") }
        // Monitors and windows (1 | 2); the pointer in the frames (2), or not (1).
        _ = try dialog.request(
            "SelectSources", [.path(handle)],
            ["types": .number(3), "multiple": .flag(false), "cursor_mode": .number(showsPointer ? 2 : 1)])
        let started = try dialog.request("Start", [.path(handle), .text("")], [:])
        guard let stream = started["streams"]?.list?.first?.list, let node = stream.first?.number else {
            throw .failed("Start")
        }
        let reply = connection.call(
            service, object, interface, "OpenPipeWireRemote", [.path(handle), .table([:])], within: patience)
        guard let reply, let descriptor = reply.descriptors.first else { throw .failed("OpenPipeWireRemote") }
        for further in reply.descriptors.dropFirst() { close(further) }
        let sides = stream.dropFirst().first?.table?["size"]?.list?.compactMap(\.integer) ?? []
        let size = sides.count == 2 ? (width: Int(sides[0]), height: Int(sides[1])) : nil
        return ScreenPortal(node, size, descriptor, connection)
    }

    /// The responses that have arrived, by the path of their request.
    private final class Responses: Sendable {
        private let arrived = Mutex<[String: [BusValue]]>([:])
        let news = DispatchSemaphore(value: 0)

        /// The portal's name on the bus.
        private let sender = Mutex("")

        func expect(from name: String) { sender.withLock { $0 = name } }

        func wants(_ origin: BusConnection.Origin) -> Bool {
            origin.member == "Response" && origin.interface == "org.freedesktop.portal.Request"
                && origin.sender == sender.withLock { $0 }
        }

        func take(_ signal: BusConnection.Signal) {
            arrived.withLock { $0[signal.origin.path] = signal.body }
            news.signal()
        }

        func response(to path: String) -> [BusValue]? { arrived.withLock { $0.removeValue(forKey: path) } }
    }

    /// The calls that the user or the portal responds to later.
    private struct Dialog {
        /// Seconds between looks at the end of the caller's interest.
        private static let interval = 0.2

        let connection: BusConnection
        let responses: Responses
        let deadline: DispatchTime
        let isCancelled: () -> Bool

        func request(
            _ method: String, _ values: [BusValue], _ options: [String: BusValue]
        ) throws(Failure) -> [String: BusValue] {
            // The path is known before the call, because the response may come before its reply.
            let token = "connectlive_\(UInt32.random(in: 0 ... .max))"
            let sender = connection.name.dropFirst().map { $0 == "." ? "_" : "\($0)" }.joined()
            var path = "\(ScreenPortal.object)/request/\(sender)/\(token)"
            let table = options.merging(["handle_token": .text(token)]) { $1 }
            let reply = connection.call(
                ScreenPortal.service, ScreenPortal.object, ScreenPortal.interface, method, values + [.table(table)],
                within: ScreenPortal.patience)
            guard let reply else { throw .failed(method) }
            // Portals before version 0.9 choose another path.
            if let chosen = reply.values.first?.text { path = chosen }
            while true {
                if let response = responses.response(to: path) {
                    switch response.first?.number {
                    case 0: return response.dropFirst().first?.table ?? [:]
                    case 1: throw .refused
                    default: throw .failed(method)
                    }
                }
                guard DispatchTime.now() < deadline, !isCancelled() else { throw .refused }
                _ = responses.news.wait(timeout: min(deadline, .now() + Self.interval))
            }
        }
    }
}

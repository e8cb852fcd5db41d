internal import CXConnections
import Synchronization

/// Connections to X servers that break, because the server ended or its machine is unreachable.
///
/// By default, Xlib then ends the process, until `survive` changes that. The first X element calls it (`XElements`).
/// Connections opened afterwards only fail, whichever code owns them. An element with such a connection continues
/// without noticing, captures the last frame again, and shows nothing. Its node must therefore watch the connection.
package enum XConnections {
    /// Waits for a connection to break, while it lives.
    package final class Watch: Sendable {
        /// Without the screen's number, because a server has one connection for all screens.
        fileprivate let server: Substring
        /// Ignores older connections, because an earlier server may have had the same name.
        fileprivate let since: UInt
        fileprivate let body: @Sendable () -> Void

        fileprivate init(_ display: String, _ body: @escaping @Sendable () -> Void) {
            server = XConnections.server(of: display)
            since = x_connections_opened()
            self.body = body
        }

        deinit {
            let identifier = ObjectIdentifier(self)
            watches.withLock { _ = $0.removeValue(forKey: identifier) }
        }
    }

    private static let watches = Mutex<[ObjectIdentifier: WeakBox<Watch>]>([:])

    private static let isInstalled: Bool = {
        x_connections_survive { name, number in
            let server = XConnections.server(of: String(cString: name))
            let watches = watches.withLock { $0.values.compactMap(\.value) }
            for watch in watches where watch.server == server && watch.since < number { watch.body() }
        }
        return true
    }()

    /// Required before anything opens a display. Changes Xlib for the whole process, once.
    package static func survive() {
        precondition(isInstalled)
    }

    /// Whether Xlib was changed in this process.
    package static var isSurviving: Bool { x_connections_are_wrapped() }

    /// Calls `body` when a display connection breaks that was opened after this call: once for each, on the thread that
    /// detected it, inside Xlib. It must neither wait nor use a display.
    package static func watch(_ display: String, _ body: @escaping @Sendable () -> Void) -> Watch {
        survive()
        let watch = Watch(display, body)
        watches.withLock { $0[ObjectIdentifier(watch)] = WeakBox(watch) }
        return watch
    }

    private static func server(of display: String) -> Substring {
        guard let colon = display.lastIndex(of: ":") else { return display[...] }
        return display[..<(display[colon...].firstIndex(of: ".") ?? display.endIndex)]
    }
}

internal import CXConnections

/// Connections to X servers that break, because the server ended or its machine is unreachable.
///
/// By default, Xlib then ends the process, until `survive` changes that. The first X element calls it (`XElements`).
/// Connections opened afterwards only fail, whichever code owns them. An element with such a connection continues
/// without noticing, captures the last frame again, and shows nothing. Its node must therefore watch the connection.
package enum XConnections {
    /// A connection that broke.
    package struct Break: Sendable {
        /// Without the screen's number, because a server has one connection for all screens.
        fileprivate let server: Substring
        /// Connections are counted, because an earlier server may have had the same name.
        fileprivate let number: UInt
    }

    private static let watches = XWatches<Break>()

    private static let isInstalled: Bool = {
        x_connections_survive { name, number in
            watches.notify(Break(server: XConnections.server(of: String(cString: name)), number: number))
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
    package static func watch(_ display: String, _ body: @escaping @Sendable () -> Void) -> XWatch<Break> {
        survive()
        let (server, opened) = (server(of: display), x_connections_opened())
        return watches.add { if $0.server == server, $0.number > opened { body() } }
    }

    private static func server(of display: String) -> Substring {
        guard let colon = display.lastIndex(of: ":") else { return display[...] }
        return display[..<(display[colon...].firstIndex(of: ".") ?? display.endIndex)]
    }
}

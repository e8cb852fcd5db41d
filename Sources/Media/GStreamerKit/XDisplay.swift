internal import CX11

/// The screen and the windows of an X server.
package enum XDisplay {
    package struct Window: Sendable, Hashable {
        package let identifier: UInt
        package let title: String
        package let width: Int
        package let height: Int
        /// Whether the window is on the screen, not minimised.
        package let isShown: Bool
    }

    /// How deep below the root to search for titles: window managers put one or two windows around each.
    private static let depth = 3
    /// `IsViewable` of X.h.
    private static let viewable: Int32 = 2

    /// The root window of a display, which has the size of its screen. Nil if the display cannot be opened. A nil display
    /// means that of the environment. Blocks for some milliseconds, like the other queries.
    package static func screen(of display: String?) -> Window? {
        asking(display) { window(XDefaultRootWindow($0), $0) } ?? nil
    }

    /// A window by its number.
    package static func window(_ identifier: UInt, of display: String?) -> Window? {
        asking(display) { window(identifier, $0) } ?? nil
    }

    /// The windows with a title, the topmost last.
    package static func windows(of display: String?) -> [Window] {
        asking(display) { windows(below: XDefaultRootWindow($0), $0, depth: depth) } ?? []
    }

    /// Opens a connection for one query. A window that disappears meanwhile is an X error, which ends the process
    /// unless it is caught.
    private static func asking<Answer>(_ display: String?, _ body: (OpaquePointer) -> Answer) -> Answer? {
        XConnections.survive()
        XErrors.survive()
        guard let connection = XOpenDisplay(display) else { return nil }
        defer { XCloseDisplay(connection) }
        return body(connection)
    }

    private static func window(_ identifier: UInt, _ connection: OpaquePointer) -> Window? {
        var attributes = XWindowAttributes()
        guard XGetWindowAttributes(connection, identifier, &attributes) != 0 else { return nil }
        return Window(
            identifier: identifier, title: title(of: identifier, connection) ?? "",
            width: Int(attributes.width), height: Int(attributes.height), isShown: attributes.map_state == viewable)
    }

    private static func windows(below parent: UInt, _ connection: OpaquePointer, depth: Int) -> [Window] {
        var (root, above, count): (UInt, UInt, UInt32) = (0, 0, 0)
        var list: UnsafeMutablePointer<UInt>?
        guard depth > 0, XQueryTree(connection, parent, &root, &above, &list, &count) != 0, let list else { return [] }
        defer { XFree(list) }
        return UnsafeBufferPointer(start: list, count: Int(count)).flatMap { child -> [Window] in
            let own = window(child, connection).map { $0.title.isEmpty ? [] : [$0] } ?? []
            return own.isEmpty ? windows(below: child, connection, depth: depth - 1) : own
        }
    }

    /// The window manager's title (`_NET_WM_NAME`, UTF-8), or that of older programs.
    private static func title(of identifier: UInt, _ connection: OpaquePointer) -> String? {
        for property in ["_NET_WM_NAME", "WM_NAME"] {
            let atom = XInternAtom(connection, property, 1)
            guard atom != 0 else { continue }
            var (type, format, count, rest): (UInt, Int32, UInt, UInt) = (0, 0, 0, 0)
            var bytes: UnsafeMutablePointer<UInt8>?
            // 256 times 4 bytes are enough to distinguish windows. A type of 0 means any type.
            let answer = XGetWindowProperty(
                connection, identifier, atom, 0, 256, 0, 0, &type, &format, &count, &rest, &bytes)
            guard answer == 0, let bytes else { continue }
            defer { XFree(bytes) }
            if format == 8, count > 0 {
                return String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
            }
        }
        return nil
    }
}

/// Errors that an X server reports, such as for a missing window.
///
/// By default, Xlib ends the process for each of them. Its handler is one for all connections of the process, and does
/// not identify ximagesrc's. So from the first query on, all X errors are survived, whichever code caused them.
package enum XErrors {
    private static let watches = XWatches<Void>()

    private static let isInstalled: Bool = {
        XSetErrorHandler { _, _ in
            XErrors.watches.notify(())
            return 0
        }
        return true
    }()

    package static func survive() {
        precondition(isInstalled)
    }

    /// Calls `body` on the thread that caused an error, possibly many times. It must not use the display.
    package static func watch(_ body: @escaping @Sendable () -> Void) -> XWatch<Void> {
        survive()
        return watches.add(body)
    }
}

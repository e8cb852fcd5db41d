internal import CXConnections
import Synchronization

/// Connections to X servers that break, because the server has ended or its machine cannot be reached.
///
/// Xlib ends the process then. Nothing changes that before `survive`, which the first element of X calls (`XElements`).
/// All connections that are opened after it, whoever opens them, only fail: an element
/// that has one goes on without knowing, capturing the last picture and showing nothing. Whoever has the element must
/// watch.
package enum XConnections {
    private struct State {
        var watchers: [ObjectIdentifier: Weak] = [:]
    }

    private struct Weak {
        weak var watch: Watch?
    }

    /// Waits for a connection to break, for as long as it lives.
    package final class Watch: Sendable {
        /// Without the screen's number: a server has one connection for all of them.
        fileprivate let server: Substring
        /// Connections that are older are none of ours: a server that has ended may have had the same name.
        fileprivate let since: UInt
        fileprivate let body: @Sendable () -> Void

        fileprivate init(_ display: String, _ body: @escaping @Sendable () -> Void) {
            server = XConnections.server(of: display)
            since = x_connections_opened()
            self.body = body
        }

        deinit {
            let identifier = ObjectIdentifier(self)
            state.withLock { _ = $0.watchers.removeValue(forKey: identifier) }
        }
    }

    private static let state = Mutex(State())

    private static let isInstalled: Bool = {
        x_connections_survive { name, number in
            let server = XConnections.server(of: String(cString: name))
            let watches = state.withLock { $0.watchers.values.compactMap(\.watch) }
            for watch in watches where watch.server == server && watch.since < number { watch.body() }
        }
        return true
    }()

    /// Must come before anything opens a display. Changes Xlib for the whole process, once.
    package static func survive() {
        precondition(isInstalled)
    }

    /// Whether Xlib has been changed in this process.
    package static var isSurviving: Bool { x_connections_are_wrapped() }

    /// Calls `body` when a connection to a display breaks that is opened after this call: once for each, on whatever
    /// thread noticed, inside Xlib. It may neither wait nor ask a display there.
    package static func watch(_ display: String, _ body: @escaping @Sendable () -> Void) -> Watch {
        survive()
        let watch = Watch(display, body)
        state.withLock { $0.watchers[ObjectIdentifier(watch)] = Weak(watch: watch) }
        return watch
    }

    private static func server(of display: String) -> Substring {
        guard let colon = display.lastIndex(of: ":") else { return display[...] }
        return display[..<(display[colon...].firstIndex(of: ".") ?? display.endIndex)]
    }
}

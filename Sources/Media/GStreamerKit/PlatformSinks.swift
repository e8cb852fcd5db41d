internal import Glibc
import MediaGraph

/// The available sound system of this machine.
package enum AudioSystem {
    /// The playback element of the first sound system that responds. Blocks for some milliseconds.
    package static var playing: String? { firstThatOpens(["pulsesink", "alsasink"]) }

    /// The capture element of the first sound system that responds. Blocks for some milliseconds.
    package static var recording: String? { firstThatOpens(["pulsesrc", "pipewiresrc", "alsasrc"]) }

    private static func firstThatOpens(_ factories: [String]) -> String? {
        factories.first { factory in
            guard GStreamer.has(factory), let element = try? Element(factory) else { return false }
            return element.canOpen()
        }
    }
}

package enum DisplaySystem {
    /// An X server that restarts after its last client left refuses connections for a moment.
    private static let attempts = 3
    private static let pauseMicroseconds: UInt32 = 150_000

    /// An open element that shows frames on the environment's display. Nil if there is none or it cannot be opened.
    /// Blocks for some milliseconds, or half a second on failure.
    package static func openWindowSink() -> Element? {
        guard isNamed else { return nil }
        for attempt in 1...attempts {
            if let sink = openOnce() { return sink }
            if attempt < attempts { usleep(pauseMicroseconds) }
        }
        return nil
    }

    private static func openOnce() -> Element? {
        if getenv("WAYLAND_DISPLAY") != nil, let sink = opened("waylandsink") { return sink }
        // Plain X first: its connection keeps alive a server that ends with its last client while XVideo, which scales
        // in hardware, is tried.
        guard getenv("DISPLAY") != nil, let plain = opened("ximagesink") else { return nil }
        guard let accelerated = opened("xvimagesink") else { return plain }
        plain.close()
        return accelerated
    }

    private static func opened(_ factory: String) -> Element? {
        guard GStreamer.has(factory),
            let element = try? Element(factory, ["sync": false, "async": false, "qos": false])
        else { return nil }
        if element.setState(.ready) { return element }
        element.close()
        return nil
    }

    /// The environment's X display.
    package static var x: String? { getenv("DISPLAY").map { String(cString: $0) } }

    /// Whether this element opens X windows.
    package static func isX(_ factory: String) -> Bool { factory != "waylandsink" }

    /// Whether the environment names a display.
    package static var isNamed: Bool { getenv("WAYLAND_DISPLAY") != nil || getenv("DISPLAY") != nil }
}

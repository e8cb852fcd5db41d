internal import Glibc

/// Which sound system and display of this machine answer.
package enum AudioSystem {
    /// The element that plays on the first sound system that answers, or nil. Blocks for some milliseconds.
    package static var playing: String? { firstThatOpens(["pulsesink", "alsasink"]) }

    /// The element that records from the first sound system that answers, or nil. Blocks for some milliseconds.
    package static var recording: String? { firstThatOpens(["pulsesrc", "pipewiresrc", "alsasrc"]) }

    private static func firstThatOpens(_ factories: [String]) -> String? {
        factories.first { factory in
            guard GStreamer.has(factory), let element = try? Element(factory) else { return false }
            return element.canOpen()
        }
    }
}

package enum DisplaySystem {
    /// An X server that is about to start again after its last client left refuses for a moment.
    private static let attempts = 3
    private static let pauseMicroseconds: UInt32 = 150_000

    /// An element, already open, that shows pictures on the display that the environment names; nil when there is
    /// none or it cannot be opened. Blocks for some milliseconds, for half a second where it fails.
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
        // Plain X first: its connection keeps a server that ends with its last client alive while XVideo, which
        // scales in hardware, is tried.
        guard getenv("DISPLAY") != nil, let plain = opened("ximagesink") else { return nil }
        guard let accelerated = opened("xvimagesink") else { return plain }
        plain.close()
        return accelerated
    }

    private static func opened(_ factory: String) -> Element? {
        guard GStreamer.has(factory),
            let element = try? Element(factory, ["sync": false, "async": false, "qos": false])
        else { return nil }
        if element.open() { return element }
        element.close()
        return nil
    }

    /// The X display that the environment names.
    package static var x: String? { getenv("DISPLAY").map { String(cString: $0) } }

    /// Whether windows of such an element are X's.
    package static func isX(_ factory: String) -> Bool { factory != "waylandsink" }

    /// Whether the environment names a display at all.
    package static var isNamed: Bool { getenv("WAYLAND_DISPLAY") != nil || getenv("DISPLAY") != nil }
}

internal import Glibc

/// Which sound system and display of this machine answer.
package enum AudioSystem {
    /// The element that plays on the first sound system that answers, or nil. Blocks for some milliseconds.
    package static var playing: String? { firstThatOpens(["pulsesink", "alsasink"]) }

    /// The element that records from the first sound system that answers, or nil. Blocks for some milliseconds.
    package static var recording: String? { firstThatOpens(["pulsesrc", "alsasrc"]) }

    private static func firstThatOpens(_ factories: [String]) -> String? {
        factories.first { factory in
            guard GStreamer.has(factory), let element = try? Element(factory) else { return false }
            return element.canOpen()
        }
    }
}

package enum DisplaySystem {
    /// The element that shows pictures on the display that the environment names, or nil when there is none or it
    /// cannot be opened. Blocks for some milliseconds.
    package static var windowSink: String? {
        var candidates: [String] = []
        if getenv("WAYLAND_DISPLAY") != nil { candidates.append("waylandsink") }
        if getenv("DISPLAY") != nil { candidates += ["xvimagesink", "ximagesink"] }
        return candidates.first { factory in
            guard GStreamer.has(factory), let element = try? Element(factory) else { return false }
            return element.canOpen()
        }
    }

    /// Whether the environment names a display at all.
    package static var isNamed: Bool { getenv("WAYLAND_DISPLAY") != nil || getenv("DISPLAY") != nil }
}

import GStreamerKit
import Glibc
import MediaGraph

/// Finds the display, window or PipeWire node of a screen node.
enum ScreenSearch {
    /// Timeout for a PipeWire node's first frame, in seconds.
    private static let firstFrameTimeout = 3.0
    /// How many windows to list if none matches.
    private static let mostNamed = 6

    static func find(display: String, window: String) throws(MediaError) -> CapturedScreen {
        let name = display.isEmpty ? getenv("DISPLAY").map { String(cString: $0) } ?? "" : display
        guard !name.isEmpty else {
            throw ScreenFailure.unavailable(
                "No X display is named",
                "Set DISPLAY or the node's display, or use a PipeWire node with pipewire-node")
        }
        guard let screen = XDisplay.screen(of: name) else {
            throw ScreenFailure.unavailable(
                "The X display \(name) cannot be opened",
                "Check that it runs and that XAUTHORITY gives this user access")
        }
        var notes: [String] = []
        if getenv("WAYLAND_DISPLAY") != nil {
            notes.append("this is a Wayland session, of which \(name) shows only X11 windows")
        }
        guard !window.isEmpty else {
            return CapturedScreen(display: name, width: screen.width, height: screen.height, notes: notes)
        }
        let (found, others) = try self.window(window, on: name)
        notes += others.map { "\"\($0.title)\" also matches the title" }
        if !found.isShown { notes.append("the window is minimised, and delivers no frames until it is shown") }
        return CapturedScreen(
            display: name, width: found.width, height: found.height, window: found.identifier,
            title: found.title, notes: notes)
    }

    private static func window(
        _ wanted: String, on display: String
    ) throws(MediaError) -> (found: XDisplay.Window, others: [XDisplay.Window]) {
        let number = wanted.hasPrefix("0x") ? UInt(wanted.dropFirst(2), radix: 16) : UInt(wanted)
        if let number, let window = XDisplay.window(number, of: display) { return (window, []) }
        let all = XDisplay.windows(of: display)
        let exact = all.filter { $0.title == wanted }
        let fitting = exact.isEmpty ? all.filter { $0.title.lowercased().contains(wanted.lowercased()) } : exact
        // Programs keep small hidden windows with the same title.
        let ranked = fitting.sorted { first, second in
            if first.isShown != second.isShown { return first.isShown }
            return first.width * first.height > second.width * second.height
        }
        guard let best = ranked.first else {
            let titles = all.filter(\.isShown).prefix(mostNamed).map { "\"\($0.title)\"" }
            let there =
                titles.isEmpty ? "No window has a title" : "Choose one of \(titles.joined(separator: ", "))"
            throw MediaError(
                code: MediaError.Code.screenNoWindow,
                message: "No window of \(display) has the title or number \"\(wanted)\". \(there).")
        }
        return (best, ranked.dropFirst().filter(\.isShown))
    }

    /// The properties with which pipewiresrc selects a node, by number or by name.
    ///
    /// - Parameter descriptor: that of a connection to PipeWire. Nil for the user's PipeWire.
    static func target(_ node: String, _ descriptor: Int? = nil) -> [String: SettingValue] {
        var properties: [String: SettingValue] = [
            Int(node) == nil ? "target-object" : "path": .text(node), "do-timestamp": true,
        ]
        properties["fd"] = descriptor.map { .integer($0) }
        return properties
    }

    static func findPipeWire(_ node: String, _ descriptor: Int?) throws(MediaError) -> CapturedScreen {
        if descriptor == nil, !(try Element("pipewiresrc").canOpen()) {
            throw ScreenFailure.unavailable("PipeWire does not respond", "Start it, or use an X display")
        }
        let answer = try SourceProbe.ask(
            "pipewiresrc", target(node, descriptor), media: "video/x-raw", converters: ["videoconvert"],
            seconds: firstFrameTimeout)
        guard case .format(let caps) = answer, let format = caps?.structures.first,
            let width = format.integer("width"), let height = format.integer("height")
        else {
            throw ScreenFailure.unavailable(
                "The PipeWire node \(node) delivered no frame within \(Int(firstFrameTimeout)) s",
                "Check its number with pw-cli ls Node, and that the screen is shared")
        }
        return CapturedScreen(
            display: "", width: width, height: height, framesPerSecond: format.fractions("framerate").first { $0 > 0 })
    }
}

/// Errors of screen capture.
enum ScreenFailure {
    static func unavailable(_ what: String, _ remedy: String) -> MediaError {
        MediaError(code: MediaError.Code.screenUnavailable, message: "\(what). \(remedy).")
    }

    static func closed(_ title: String) -> MediaError {
        MediaError(
            code: MediaError.Code.screenLost,
            message: "The window \"\(title)\" was closed while it was captured. Open it and start again.")
    }

    static func lost(_ what: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.screenLost,
            message:
                "\(what) stopped delivering frames: \(reason.trimmedSentence). Check that it still exists, then start "
                + "again.")
    }
}

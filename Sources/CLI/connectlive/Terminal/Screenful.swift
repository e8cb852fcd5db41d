internal import Foundation

/// Lines that are updated: in place on a terminal, otherwise appended.
final class Screenful {
    private let file: FileHandle
    let isTerminal: Bool
    private var shown = 0

    init(_ file: FileHandle) {
        self.file = file
        isTerminal = isatty(file.fileDescriptor) == 1
    }

    /// Whether text may have colours (https://no-color.org).
    var hasColours: Bool { isTerminal && (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty }

    func show(_ lines: [String]) {
        guard isTerminal else { return write(lines.joined(separator: "\n") + "\n") }
        let size = size
        // Lines are cut to the width, because a wrapped line would spoil the line count.
        let fitting = lines.prefix(size.rows - 1).map { Self.cut($0, to: size.columns - 1) }
        write(start + fitting.joined(separator: "\n") + "\n")
        shown = fitting.count
    }

    /// Prints a line above the updated ones, which appear again with the next `show`. Control characters in it are
    /// replaced.
    func say(_ line: String) {
        write((isTerminal ? start : "") + line.printable + "\n")
        shown = 0
    }

    /// Moves to the first line and clears everything below.
    private var start: String { shown > 0 ? "\u{1b}[\(shown)A\r\u{1b}[J" : "" }

    private var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(file.fileDescriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 20, size.ws_row > 3 else {
            return (120, 50)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Cuts a line to a width. Escape sequences have no width.
    private static func cut(_ line: String, to width: Int) -> String {
        var cut = ""
        var count = 0
        var isEscape = false
        for character in line {
            if character == "\u{1b}" { isEscape = true }
            if !isEscape { count += 1 }
            if count <= width || isEscape { cut.append(character) }
            if isEscape, character == "m" { isEscape = false }
        }
        return cut
    }

    private func write(_ text: String) { try? file.write(contentsOf: Data(text.utf8)) }
}

/// Text styles of a terminal.
struct Style {
    let hasColours: Bool

    func bold(_ text: String) -> String { wrap(text, "1") }
    func faint(_ text: String) -> String { wrap(text, "2") }
    func warning(_ text: String) -> String { wrap(text, "33") }

    private func wrap(_ text: String, _ code: String) -> String {
        hasColours && !text.isEmpty ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
    }
}

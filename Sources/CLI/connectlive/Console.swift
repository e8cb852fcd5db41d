internal import Foundation

/// Standard error as a person or a log sees it: messages are whole lines, and on a terminal a status line below them is
/// updated in place.
enum Console {
    /// Whether standard error is a terminal.
    static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    static func error(_ sentence: String) { line("connectlive: \(sentence)") }

    /// One line on standard output, at once even when it goes to a file.
    static func say(_ text: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
    }

    static func line(_ text: String) {
        write((isTerminal ? "\r\u{1b}[K" : "") + text + "\n")
    }

    /// Shows the text in place of the last status: terminals only.
    static func status(_ text: String) {
        write("\r\u{1b}[K" + String(text.prefix(width - 1)))
    }

    /// Leaves the status where it stands and goes on below it.
    static func endStatus() {
        if isTerminal { write("\n") }
    }

    private static var width: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 20 else { return 120 }
        return Int(size.ws_col)
    }

    private static func write(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }
}

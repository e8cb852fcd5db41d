internal import Foundation
internal import RoomServer
internal import Synchronization

/// Standard error, for people and logs. Messages are whole lines; on a terminal, a status line below them updates in
/// place. Control characters in them are replaced.
enum Console {
    /// Nil as long as a line may wait for the reader of standard error.
    private static let queue = Mutex<LineQueue?>(nil)

    /// From now on, lines wait on a queue of their own: a reader that halts delays nothing but them. Lines beyond the queue's
    /// capacity are dropped and counted. For commands that never give up.
    static func neverBlock() {
        queue.withLock { queue in
            queue =
                queue
                ?? LineQueue("connectlive.console") { count in
                    writeNow("connectlive: \(count) lines were dropped, because nobody read standard error.\n")
                }
        }
    }

    /// Waits until all lines are written, half a second at most. For the end of the process.
    static func drain() { queue.withLock { $0 }?.drain() }

    /// Whether standard error is a terminal.
    static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    static func error(_ sentence: String) { line("connectlive: \(sentence)") }

    /// Prints one line to standard output and flushes it, also into a file.
    static func say(_ text: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
    }

    static func line(_ text: String) {
        write((isTerminal ? "\r\u{1b}[K" : "") + text.printable + "\n")
    }

    /// Replaces the last status. For terminals only.
    static func status(_ text: String) {
        write("\r\u{1b}[K" + String(text.printable.prefix(width - 1)))
    }

    /// Keeps the last status and continues on the next line.
    static func endStatus() {
        if isTerminal { write("\n") }
    }

    private static var width: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 20 else { return 120 }
        return Int(size.ws_col)
    }

    private static func write(_ text: String) {
        guard let queue = queue.withLock({ $0 }) else { return writeNow(text) }
        queue.add { writeNow(text) }
    }

    private static func writeNow(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }
}

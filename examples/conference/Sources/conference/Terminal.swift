import ConnectLiveSDK
import Foundation

/// The terminal of standard input and output. `close` restores it.
@MainActor final class Terminal: Surface {
    private var former = termios()
    private let output = FileHandle(fileDescriptor: dup(STDOUT_FILENO))
    /// Messages of the process and of a screen share. They would spoil the screen, so `close` prints them. They are lost if no
    /// file can be written.
    private let messages = FileHandle(fileDescriptor: tmpfile().map { fileno($0) } ?? open("/dev/null", O_RDWR))
    private let outputs = [STDOUT_FILENO, STDERR_FILENO].filter { isatty($0) == 1 }
    private var shown = Canvas(columns: 0, rows: 0)
    private var canvas = Canvas(columns: 0, rows: 0)
    private var unread: [UInt8] = []
    private var isOpen = true

    /// Nil if standard input or output is something else.
    init?() {
        guard isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &former) == 0 else { return nil }
        var raw = former
        cfmakeraw(&raw)
        raw.c_oflag = former.c_oflag
        // Reading never waits.
        withUnsafeMutableBytes(of: &raw.c_cc) { ($0[Int(VMIN)], $0[Int(VTIME)]) = (0, 0) }
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw)
        for descriptor in outputs { dup2(messages.fileDescriptor, descriptor) }
        // The other screen, no cursor.
        put("\u{1b}[?1049h\u{1b}[?25l")
    }

    func close() {
        guard isOpen else { return }
        isOpen = false
        put("\u{1b}[0m\u{1b}[?25h\u{1b}[?1049l")
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &former)
        for descriptor in outputs { dup2(output.fileDescriptor, descriptor) }
        messages.seek(toFileOffset: 0)
        try? output.write(contentsOf: messages.readDataToEndOfFile())
    }

    private func put(_ text: String) { try? output.write(contentsOf: Data(text.utf8)) }

    // MARK: - Drawing

    var columns: Int { canvas.columns }
    var rows: Int { canvas.rows }

    func clear() {
        var size = winsize()
        let isKnown = ioctl(output.fileDescriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 && size.ws_row > 0
        canvas = isKnown ? Canvas(columns: Int(size.ws_col), rows: Int(size.ws_row)) : Canvas(columns: 80, rows: 24)
    }

    func write(_ text: String, in area: Area, _ colour: Colour, on background: Colour) {
        canvas.write(text, in: area, colour, on: background)
    }

    func show(_ frame: VideoFrame, in area: Area) { canvas.show(frame, in: area) }

    func present() {
        put(canvas.changes(from: shown))
        shown = canvas
    }

    // MARK: - Keys

    func keys() -> [Key] {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(STDIN_FILENO, &bytes, bytes.count)
        unread += bytes.prefix(max(0, count))
        var keys: [Key] = []
        while let key = nextKey() { if let key { keys.append(key) } }
        return keys
    }

    /// The next key, `.some(nil)` for a sequence that means none, and nil if more has to be read.
    private func nextKey() -> Key?? {
        guard let first = unread.first else { return nil }
        switch first {
        case 0x1b: return .some(sequence())
        case 0x03: return taking(1, .quit)
        case 0x0a, 0x0d: return taking(1, .enter)
        case 0x08, 0x7f: return taking(1, .backspace)
        default:
            let length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
            guard unread.count >= length else { return nil }
            let text = String(decoding: unread.prefix(length), as: UTF8.self)
            return taking(length, text.first.map { .character($0) })
        }
    }

    /// A key that begins with the escape character, or this key alone.
    private func sequence() -> Key? {
        guard unread.count > 2, unread[1] == UInt8(ascii: "[") || unread[1] == UInt8(ascii: "O") else {
            return taking(1, .escape)
        }
        let end = unread.dropFirst(2).firstIndex { (0x40...0x7e).contains($0) } ?? unread.count - 1
        let arrows: [UInt8: Key] = [0x41: .up, 0x42: .down, 0x43: .right, 0x44: .left]
        return taking(end + 1, arrows[unread[end]])
    }

    private func taking(_ count: Int, _ key: Key?) -> Key? {
        unread.removeFirst(count)
        return key
    }
}

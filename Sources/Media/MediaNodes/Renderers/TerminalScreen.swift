import Dispatch
import GStreamerKit
import Glibc
import MediaGraph
import Synchronization

/// A terminal with its own drawing thread, because terminals may be slow.
package final class TerminalScreen: Sendable {
    private struct State {
        var last: MediaTime?
        var isDrawing = false
        var isClosed = false
        var fit = FrameFit.whole
    }

    /// The assumed size of a terminal that does not report its size.
    private static let usualSize = (columns: 80, rows: 24)
    private static let clear = Array("\u{1b}[2J".utf8)
    private static let begin = Array("\u{1b}[?25l\u{1b}[2J".utf8)
    private static let end = Array("\u{1b}[0m\u{1b}[?25h\r\n".utf8)

    private let descriptor: Int32
    private let isOwn: Bool
    private let columns: Int?
    private let rows: Int?
    private let interval: Double
    private let queue = DispatchQueue(label: "media.terminal")
    private let state = Mutex(State())

    /// A terminal that the program has opened, at most 10 frames/s.
    package convenience init(descriptor: Int32) { self.init(descriptor, isOwn: false, nil, nil, 10) }

    convenience init(device: String, columns: Int?, rows: Int?, picturesPerSecond: Int) throws(MediaError) {
        let isOwn = !device.isEmpty
        let descriptor = isOwn ? open(device, O_WRONLY | O_NOCTTY | O_CLOEXEC) : STDOUT_FILENO
        if descriptor < 0 {
            throw MediaError(
                code: MediaError.Code.fileUnwritable,
                message:
                    "The terminal \(device) cannot be opened: \(String(cString: strerror(errno))). Run `tty` in a "
                    + "terminal to see its name.")
        }
        self.init(descriptor, isOwn: isOwn, columns, rows, picturesPerSecond)
    }

    private init(_ descriptor: Int32, isOwn: Bool, _ columns: Int?, _ rows: Int?, _ picturesPerSecond: Int) {
        self.descriptor = descriptor
        self.isOwn = isOwn
        self.columns = columns
        self.rows = rows
        interval = 1 / Double(max(picturesPerSecond, 1))
    }

    /// How frames fill the terminal: whole by default.
    package var fit: FrameFit {
        get { state.withLock { $0.fit } }
        set {
            let isBegun = state.withLock { state in
                state.fit = newValue
                return state.last != nil && !state.isClosed
            }
            if isBegun { queue.async { [self] in write(Self.clear) } }
        }
    }

    deinit {
        if isOwn, descriptor >= 0 { Glibc.close(descriptor) }
    }

    /// Draws a frame, unless it is too early or the previous one is still being drawn.
    package func show(_ frame: VideoFrame) {
        let (isDue, isFirst) = state.withLock { state in
            let now = GStreamer.now
            let isFirst = state.last == nil
            let isSoon = state.last.map { now.seconds(since: $0) < interval } ?? false
            guard !state.isDrawing, !isSoon, !state.isClosed else { return (false, false) }
            state.isDrawing = true
            state.last = now
            return (true, isFirst)
        }
        guard isDue else { return }
        queue.async { [self] in
            if isFirst { write(Self.begin) }
            draw(frame)
            state.withLock { $0.isDrawing = false }
        }
    }

    private func draw(_ frame: VideoFrame) {
        let room = size
        let place = TerminalPicture.place(
            width: frame.width, height: frame.height, columns: columns ?? room.columns,
            // The last row is left for the program's own output.
            rows: rows ?? max(room.rows - 1, 1), fit)
        write(TerminalPicture.draw(frame, columns: place.columns, rows: place.rows, part: place.part))
    }

    private var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return Self.usualSize
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    private func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let written = Glibc.write(descriptor, Array(rest), rest.count)
            if written < 0, errno == EINTR || errno == EAGAIN { continue }
            guard written > 0 else { return }
            rest = rest.dropFirst(written)
        }
    }

    /// Restores the terminal's colours and cursor.
    package func close() {
        let isBegun = state.withLock { state in
            state.isClosed = true
            return state.last != nil
        }
        guard isBegun else { return }
        queue.sync { write(Self.end) }
    }
}

import Dispatch
import GStreamerKit
import Glibc
import MediaGraph
import Synchronization

/// Shows frames in the program's terminal, or in another, as coloured half blocks.
enum TerminalNode: NodeType {
    static let kind = NodeKind(
        "terminal", .renderer, "Shows frames in the terminal as coloured half blocks",
        inputs: .rawVideoIn,
        settings: [
            SettingContract("columns", .integer(1...1000), unit: "characters", "Width (default: that of the terminal)"),
            SettingContract("rows", .integer(1...500), unit: "characters", "Height (default: that of the terminal)"),
            SettingContract("fps", .integer(1...60), default: 10, unit: "frames/s", "Highest frame rate"),
            SettingContract(
                "device", .text, default: "", "Another terminal, such as /dev/pts/3 (default: the program's own)"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan.sink(request)
        plan.notes.append(
            "at most \(request.integer("fps")) frames/s are drawn; a slow terminal gets fewer")
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let device = instance.text("device")
        let screen = try TerminalScreen(
            device: device, columns: instance.optionalInteger("columns"), rows: instance.optionalInteger("rows"),
            picturesPerSecond: instance.integer("fps"))
        return VideoRendererNode(instance, handOver: screen.show, onStop: screen.close)
    }
}

/// A terminal with its own drawing thread, because terminals may be slow.
private final class TerminalScreen: Sendable {
    private struct State {
        var last: MediaTime?
        var isDrawing = false
        var isClosed = false
    }

    /// The assumed size of a terminal that does not report its size.
    private static let usualSize = (columns: 80, rows: 24)
    private static let begin = Array("\u{1b}[?25l\u{1b}[2J".utf8)
    private static let end = Array("\u{1b}[0m\u{1b}[?25h\r\n".utf8)

    private let descriptor: Int32
    private let isOwn: Bool
    private let columns: Int?
    private let rows: Int?
    private let interval: Double
    private let queue = DispatchQueue(label: "media.terminal")
    private let state = Mutex(State())

    init(device: String, columns: Int?, rows: Int?, picturesPerSecond: Int) throws(MediaError) {
        isOwn = !device.isEmpty
        descriptor = isOwn ? open(device, O_WRONLY | O_NOCTTY | O_CLOEXEC) : STDOUT_FILENO
        self.columns = columns
        self.rows = rows
        interval = 1 / Double(max(picturesPerSecond, 1))
        if descriptor < 0 {
            throw MediaError(
                code: MediaError.Code.fileUnwritable,
                message:
                    "The terminal \(device) cannot be opened: \(String(cString: strerror(errno))). Run `tty` in a "
                    + "terminal to see its name.")
        }
    }

    deinit {
        if isOwn, descriptor >= 0 { Glibc.close(descriptor) }
    }

    /// Draws a frame, unless it is too early or the previous one is still being drawn.
    func show(_ frame: VideoFrame) {
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
        let fit = TerminalPicture.size(
            width: frame.width, height: frame.height, columns: columns ?? room.columns,
            // The last row is left for the program's own output.
            rows: rows ?? max(room.rows - 1, 1))
        write(TerminalPicture.draw(frame, columns: fit.columns, rows: fit.rows))
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
    func close() {
        let isBegun = state.withLock { state in
            state.isClosed = true
            return state.last != nil
        }
        guard isBegun else { return }
        queue.sync { write(Self.end) }
    }
}

/// Shows frames in the terminal as coloured half blocks.
public struct Terminal: MediaNode {
    public var handle: NodeHandle

    /// - Parameters:
    ///   - columns: the width in characters; nil for that of the terminal.
    ///   - rows: the height in characters; nil for that of the terminal.
    ///   - framesPerSecond: the highest frame rate.
    ///   - device: another terminal, such as `/dev/pts/3`.
    public init(columns: Int? = nil, rows: Int? = nil, framesPerSecond: Int? = nil, device: String? = nil) {
        handle = NodeHandle(
            TerminalNode.kind, ["columns": columns, "rows": rows, "fps": framesPerSecond, "device": device])
    }
}

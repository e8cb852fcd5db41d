import Foundation
import Glibc
import Synchronization
import TestFixtures

/// A program of this build in a terminal of its own, as a person sees and uses it.
final class TerminalProgram: Sendable {
    /// Red, green and blue.
    typealias Colour = [Int]

    private struct State {
        var screen: Screen
        var exitCode: Int32?
    }

    private let state: Mutex<State>
    private let process: Process
    private let primary: Int32
    private let secondary: Int32
    private let modesBefore: tcflag_t

    init(
        _ name: String, _ arguments: [String], environment: [String: String], columns: Int = 80, rows: Int = 24
    ) throws {
        var (primary, secondary): (Int32, Int32) = (-1, -1)
        var size = winsize(ws_row: UInt16(rows), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        guard openpty(&primary, &secondary, nil, nil, &size) == 0 else { throw POSIXError(.ENOTTY) }
        for descriptor in [primary, secondary] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        (self.primary, self.secondary) = (primary, secondary)
        modesBefore = Self.modes(of: secondary)
        state = Mutex(State(screen: Screen(columns: columns, rows: rows)))
        process = Process()
        process.executableURL = BuiltPackage.program(name)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let terminal = FileHandle(fileDescriptor: secondary)
        (process.standardInput, process.standardOutput, process.standardError) = (terminal, terminal, terminal)
        process.terminationHandler = { [weak self] process in
            let code = process.terminationStatus
            self?.state.withLock { $0.exitCode = code }
        }
        Thread.detachNewThread { [weak self, primary] in
            var bytes = [UInt8](repeating: 0, count: 65536)
            // The end of `secondary` ends this.
            while case let count = read(primary, &bytes, bytes.count), count > 0 {
                self?.state.withLock { $0.screen.show(bytes.prefix(count)) }
            }
            close(primary)
        }
        try process.run()
    }

    deinit {
        if process.isRunning { process.terminate() }
        close(secondary)
    }

    private static func modes(of descriptor: Int32) -> tcflag_t {
        var modes = termios()
        tcgetattr(descriptor, &modes)
        return modes.c_lflag
    }

    // MARK: - Using it

    func type(_ text: String) { _ = text.withCString { write(primary, $0, strlen($0)) } }

    func resize(columns: Int, rows: Int) {
        state.withLock { $0.screen = Screen(columns: columns, rows: rows) }
        var size = winsize(ws_row: UInt16(rows), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(primary, UInt(TIOCSWINSZ), &size)
    }

    func terminate() { process.terminate() }

    var exitCode: Int32? { state.withLock { $0.exitCode } }
    /// Whether the first screen, its cursor and the way of reading keys are back.
    var isRestored: Bool {
        Self.modes(of: secondary) == modesBefore && state.withLock { $0.screen.isOriginal && $0.screen.hasCursor }
    }

    // MARK: - Seeing it

    var text: String { state.withLock { $0.screen.lines.joined(separator: "\n") } }

    func shows(_ text: String) -> Bool { self.text.contains(text) }

    /// Whether the frame above a caption has all colours of the test pattern's bars, roughly.
    func showsBars(above caption: String) -> Bool {
        let seen = state.withLock { $0.screen.colours(above: caption) }
        return Self.bars.allSatisfy { bar in
            seen.contains { colour in zip(bar, colour).allSatisfy { abs($0 - $1) < 50 } }
        }
    }

    /// Yellow, cyan, green, magenta, red and blue, at 75 %.
    static let bars: [Colour] = [
        [191, 191, 0], [0, 191, 191], [0, 191, 0], [191, 0, 191], [191, 0, 0], [0, 0, 191],
    ]
}

/// The part of a terminal that programs with 24-bit colours use (ECMA-48).
private struct Screen {
    private struct Cell {
        var character: Character = " "
        var colour: TerminalProgram.Colour = []
    }

    let columns: Int
    private var cells: [Cell]
    private var place = 0
    private var colour: TerminalProgram.Colour = []
    private var unread: [UInt8] = []
    private(set) var isOriginal = true
    private(set) var hasCursor = true

    init(columns: Int, rows: Int) {
        self.columns = columns
        cells = Array(repeating: Cell(), count: columns * rows)
    }

    var lines: [String] {
        stride(from: 0, to: cells.count, by: columns).map { start in
            String(cells[start..<start + columns].map(\.character).filter { $0 != "\0" })
        }
    }

    func colours(above caption: String) -> Set<TerminalProgram.Colour> {
        for (row, line) in lines.enumerated() {
            guard let found = line.range(of: caption) else { continue }
            let column = line.distance(from: line.startIndex, to: found.lowerBound)
            let above = (max(0, row - 5)..<row).flatMap { row in
                cells[row * columns + column..<(row + 1) * columns].prefix { $0.character == "▀" }
            }
            return Set(above.map(\.colour))
        }
        return []
    }

    /// The last character or sequence may go on in the next piece.
    mutating func show(_ data: ArraySlice<UInt8>) {
        let bytes = unread + data
        var next = 0
        while next < bytes.count {
            let end: Int
            if bytes[next] == 0x1b {
                guard let last = bytes[next...].dropFirst(2).firstIndex(where: { (0x40...0x7e).contains($0) }) else {
                    break
                }
                end = last + 1
                obey(bytes[last], String(decoding: bytes[(next + 2)..<last], as: UTF8.self))
            } else {
                end = next + (bytes[next] < 0xc0 ? 1 : bytes[next] < 0xe0 ? 2 : bytes[next] < 0xf0 ? 3 : 4)
                guard end <= bytes.count else { break }
                put(Character(String(decoding: bytes[next..<end], as: UTF8.self)))
            }
            next = end
        }
        unread = Array(bytes[next...])
    }

    private mutating func put(_ character: Character) {
        guard cells.indices.contains(place) else { return }
        cells[place] = Cell(character: character, colour: colour)
        place += 1
        if "가"..."힣" ~= character, cells.indices.contains(place) {
            cells[place] = Cell(character: "\0")
            place += 1
        }
    }

    private mutating func obey(_ command: UInt8, _ parameters: String) {
        let command = Character(Unicode.Scalar(command))
        let numbers = parameters.split(separator: ";").compactMap { Int($0) }
        switch (command, parameters) {
        case ("H", _): place = ((numbers.first ?? 1) - 1) * columns + (numbers.last ?? 1) - 1
        case ("J", _): cells = Array(repeating: Cell(), count: cells.count)
        case ("m", _) where numbers.first == 38: colour = Array(numbers.suffix(3))
        case ("h", "?1049"), ("l", "?1049"): isOriginal = command == "l"
        case ("h", "?25"), ("l", "?25"): hasCursor = command == "h"
        default: break
        }
    }
}

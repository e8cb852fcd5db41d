import ConnectLiveSDK

/// Characters with colours, as a terminal shows them.
struct Canvas {
    private struct Cell: Equatable {
        /// Empty in the second half of a wide character.
        var text = " "
        var colour = Colour.text
        var background = Colour.paper
    }

    let columns: Int
    let rows: Int
    private var cells: [Cell]

    init(columns: Int, rows: Int) {
        (self.columns, self.rows) = (columns, rows)
        cells = Array(repeating: Cell(), count: columns * rows)
    }

    /// Fills the first row of the area, and leaves out the text that does not fit.
    mutating func write(_ text: String, in area: Area, _ colour: Colour, on background: Colour) {
        guard (0..<rows).contains(area.row) else { return }
        let end = min(area.column + area.columns, columns)
        for column in area.column..<max(end, area.column) {
            cells[area.row * columns + column] = Cell(colour: colour, background: background)
        }
        var column = area.column
        for character in text {
            let width = character.columns
            guard width > 0 else { continue }
            guard column + width <= end else { return }
            cells[area.row * columns + column].text = String(character)
            if width == 2 { cells[area.row * columns + column + 1].text = "" }
            column += width
        }
    }

    /// Draws two pixels in each cell: an upper half block on the colour of the lower one.
    mutating func show(_ frame: VideoFrame, in area: Area) {
        let pixels = frame.pixels(across: area.columns, down: area.rows * 2)
        for row in 0..<area.rows where (0..<rows).contains(area.row + row) {
            for column in 0..<area.columns where area.column + column < columns {
                let upper = row * 2 * area.columns + column
                cells[(area.row + row) * columns + area.column + column] = Cell(
                    text: "▀", colour: pixels[upper], background: pixels[upper + area.columns])
            }
        }
    }

    /// The control sequences for the cells that differ from those on the screen: all of them after another size.
    func changes(from former: Canvas) -> String {
        let isSame = former.columns == columns && former.rows == rows
        // Terminals that know mode 2026 show all of it at once.
        var output = "\u{1b}[?2026h" + (isSame ? "" : "\u{1b}[2J")
        var last: (index: Int, cell: Cell)?
        for (index, cell) in cells.enumerated() where !isSame || cell != former.cells[index] {
            if index % columns == 0 || last?.index != index - 1 {
                output += "\u{1b}[\(index / columns + 1);\(index % columns + 1)H"
            }
            if last?.cell.colour != cell.colour { output += "\u{1b}[38;2;\(cell.colour.parameters)m" }
            if last?.cell.background != cell.background { output += "\u{1b}[48;2;\(cell.background.parameters)m" }
            output += cell.text
            last = (index, cell)
        }
        return output + "\u{1b}[?2026l"
    }
}

extension Character {
    /// 2 for Hangul and the like. 0 for control characters, which others may send to upset a terminal.
    fileprivate var columns: Int {
        let scalar = unicodeScalars[unicodeScalars.startIndex]
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .nonspacingMark: return 0
        default: break
        }
        switch scalar.value {
        case 0x1100...0x115f, 0x2e80...0xa4cf, 0xac00...0xd7a3, 0xf900...0xfaff, 0xfe30...0xfe6f, 0xff00...0xff60,
            0x1f300...0x1faff, 0x20000...0x3fffd:
            return 2
        default: return 1
        }
    }
}

extension Colour {
    fileprivate var parameters: String { "\(red);\(green);\(blue)" }
}

extension VideoFrame {
    /// The frame in a few pixels, row by row: the colours at their middles.
    fileprivate func pixels(across: Int, down: Int) -> [Colour] {
        let luma = samples(.luma, width, height, across, down)
        let blue = samples(.chromaBlue, (width + 1) / 2, (height + 1) / 2, across, down)
        let red = samples(.chromaRed, (width + 1) / 2, (height + 1) / 2, across, down)
        return luma.indices.map { Colour(luma: luma[$0], blue: blue[$0], red: red[$0]) }
    }

    private func samples(_ plane: VideoPlane, _ width: Int, _ height: Int, _ across: Int, _ down: Int) -> [Int] {
        withPlane(plane) { bytes, stride in
            (0..<across * down).map { index in
                let x = (index % across * 2 + 1) * width / (across * 2)
                let y = (index / across * 2 + 1) * height / (down * 2)
                return Int(bytes.unsafeLoad(fromByteOffset: y * stride + x, as: UInt8.self))
            }
        }
    }
}

extension Colour {
    /// ITU-R BT.601 with limited range.
    fileprivate init(luma: Int, blue: Int, red: Int) {
        let (y, u, v) = (298 * (luma - 16), blue - 128, red - 128)
        func byte(_ value: Int) -> UInt8 { UInt8(clamping: (value + 128) >> 8) }
        self.init(red: byte(y + 409 * v), green: byte(y - 100 * u - 208 * v), blue: byte(y + 516 * u))
    }
}

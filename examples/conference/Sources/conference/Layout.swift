import ConnectLiveSDK

/// A rectangle of character cells, which are twice as high as they are wide.
struct Area: Equatable {
    var column: Int, row: Int, columns: Int, rows: Int

    /// The largest area in the middle of this one that has the shape of a frame.
    func fitting(width: Int, height: Int) -> Area {
        guard width > 0, height > 0 else { return self }
        let columns = max(1, min(columns, rows * 2 * width / height))
        let rows = max(1, min(rows, columns * height / width / 2))
        return Area(
            column: column + (self.columns - columns) / 2, row: row + (self.rows - rows) / 2, columns: columns,
            rows: rows)
    }

    /// Areas side by side for this many tiles, as square a grid as the area allows.
    func grid(_ count: Int) -> [Area] {
        let across = (1...max(1, count)).max { cell($0, of: count) < cell($1, of: count) } ?? 1
        let down = (count + across - 1) / across
        return (0..<count).map { index in
            Area(
                column: column + index % across * columns / across, row: row + index / across * rows / down,
                columns: columns / across, rows: rows / down)
        }
    }

    /// The cells that a 4:3 frame covers in a grid with this many columns.
    private func cell(_ across: Int, of count: Int) -> Int {
        let tile = Area(column: 0, row: 0, columns: columns / across, rows: rows / ((count + across - 1) / across) - 1)
        let frame = tile.fitting(width: 4, height: 3)
        return tile.rows < 1 || tile.columns < 1 ? 0 : frame.columns * frame.rows
    }
}

/// Red, green and blue.
struct Colour: Equatable {
    var red: UInt8, green: UInt8, blue: UInt8

    static let paper = Colour(red: 18, green: 20, blue: 24)
    static let bar = Colour(red: 45, green: 50, blue: 60)
    static let text = Colour(red: 225, green: 228, blue: 232)
    static let quiet = Colour(red: 140, green: 147, blue: 158)
    static let speaking = Colour(red: 46, green: 160, blue: 67)
    static let alert = Colour(red: 235, green: 110, blue: 90)
}

/// A terminal or a window, in cells.
@MainActor protocol Surface: AnyObject {
    var columns: Int { get }
    var rows: Int { get }
    /// The keys since the last call.
    func keys() -> [Key]
    func clear()
    func write(_ text: String, in area: Area, _ colour: Colour, on background: Colour)
    func show(_ frame: VideoFrame, in area: Area)
    /// Makes visible what was drawn since `clear`.
    func present()
    func close()
}

extension Surface {
    /// Draws all of the conference.
    func draw(_ controls: Controls) {
        let conference = controls.conference
        clear()
        line(0, controls.title, .text, on: .bar)
        line(rows - 1, controls.help, .quiet, on: .bar)
        var top = 1
        if conference.stage == .lobby {
            for (field, label, value) in controls.form {
                top += 1
                let isChosen = field == controls.field
                line(top, " \(label): \(value)\(isChosen ? "▏" : "")", isChosen ? .text : .quiet)
            }
            top += 2
        }
        // The cause comes first in a long one.
        let news = Self.lines(conference.notice, columns: columns).prefix(max(3, rows / 4)).map { ($0, Colour.alert) }
        let texts = conference.chat.suffix(min(5, rows / 5)).map { ($0, Colour.text) } + news
        let bottom = rows - 1 - texts.count
        for (index, (text, colour)) in texts.enumerated() { line(bottom + index, text, colour) }
        let tiles = conference.tiles
        let middle = Area(column: 0, row: top, columns: columns, rows: bottom - top)
        for (tile, area) in zip(tiles, middle.grid(tiles.count)) where area.rows > 1 { draw(tile, in: area) }
        present()
    }

    /// A text in lines that end between words. One empty line for an empty text.
    private static func lines(_ text: String, columns: Int) -> [String] {
        text.split(separator: " ").reduce(into: [""]) { lines, word in
            let longer = lines[lines.count - 1] + (lines[lines.count - 1].isEmpty ? "" : " ") + word
            if longer.count < columns { lines[lines.count - 1] = longer } else { lines.append(String(word)) }
        }
    }

    private func line(_ row: Int, _ text: String, _ colour: Colour, on background: Colour = .paper) {
        write(" \(text)", in: Area(column: 0, row: row, columns: columns, rows: 1), colour, on: background)
    }

    private func draw(_ tile: Conference.Tile, in area: Area) {
        var picture = Area(column: area.column, row: area.row, columns: area.columns - 1, rows: area.rows - 1)
        if let frame = tile.view?.latestFrame {
            picture = picture.fitting(width: frame.width, height: frame.height)
            show(frame, in: picture)
        } else {
            let middle = Area(
                column: picture.column, row: picture.row + picture.rows / 2, columns: picture.columns, rows: 1)
            write(" no video", in: middle, .quiet, on: .bar)
        }
        let caption = Area(column: picture.column, row: picture.row + picture.rows, columns: picture.columns, rows: 1)
        let text = " \(tile.name)\(tile.isMuted ? " · muted" : "")\(tile.isSpeaking ? " · speaking" : "")"
        write(text, in: caption, .text, on: tile.isSpeaking ? .speaking : .bar)
    }
}

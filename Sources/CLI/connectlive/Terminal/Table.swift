/// Columns of text, each as wide as its widest cell, two spaces apart.
struct Table {
    enum Side { case left, right }

    private let sides: [Side]
    private var rows: [[String]] = []

    init(_ sides: Side...) { self.sides = sides }

    mutating func add(_ cells: String...) { rows.append(cells) }

    var isEmpty: Bool { rows.isEmpty }

    /// The rows, without columns that are empty in every row.
    func lines() -> [String] {
        let shown = sides.indices.filter { column in rows.contains { column < $0.count && !$0[column].isEmpty } }
        let widths = sides.indices.map { column in
            rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
        }
        return rows.map { row in
            let cells = shown.map { column -> String in
                let cell = column < row.count ? row[column] : ""
                let space = String(repeating: " ", count: widths[column] - cell.count)
                return sides[column] == .left ? cell + space : space + cell
            }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            return line
        }
    }
}

/// Wraps text.
enum Wrapping {
    /// Breaks between words so that no line is longer than `width`. A longer word gets a line of its own.
    static func lines(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return line.isEmpty ? lines : lines + [line]
    }
}

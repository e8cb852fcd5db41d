import MediaGraph

/// A frame as text for a terminal. Each character is two pixels, one above the other: an upper half block in the colour
/// of the upper pixel on a background in the colour of the lower (24-bit colours, ISO 8613-6).
enum TerminalPicture {
    /// The largest number of characters that a frame of this size fills with its aspect ratio. A character counts as
    /// twice as high as it is wide.
    static func size(
        width: Int, height: Int, columns: Int, rows: Int
    ) -> (columns: Int, rows: Int) {
        guard width > 0, height > 0, columns > 0, rows > 0 else { return (0, 0) }
        let byWidth = columns * height / width / 2
        if byWidth <= rows { return (columns, max(byWidth, 1)) }
        return (max(min(rows * 2 * width / height, columns), 1), rows)
    }

    /// The characters that a frame of this size fills, and the part of the frame that they show.
    static func place(
        width: Int, height: Int, columns: Int, rows: Int, _ fit: FrameFit
    ) -> (columns: Int, rows: Int, part: FramePart) {
        let whole = FramePart(x: 0, y: 0, width: width, height: height)
        guard width > 0, height > 0, columns > 0, rows > 0 else { return (0, 0, whole) }
        switch fit {
        case .whole:
            let size = size(width: width, height: height, columns: columns, rows: rows)
            return (size.columns, size.rows, whole)
        case .stretched: return (columns, rows, whole)
        case .filling:
            // Even, because two samples of luma share one of chroma.
            let shown = (
                width: max(min(width, height * columns / (rows * 2)) & ~1, min(width, 2)),
                height: max(min(height, width * rows * 2 / columns) & ~1, min(height, 2))
            )
            let part = FramePart(
                x: (width - shown.width) / 2 & ~1, y: (height - shown.height) / 2 & ~1, width: shown.width,
                height: shown.height)
            return (columns, rows, part)
        }
    }

    /// The frame in this many characters, from the terminal's upper left corner on, without a line feed at its end.
    ///
    /// - Parameter part: the part of the frame to draw. Nil for all of it.
    static func draw(_ frame: VideoFrame, columns: Int, rows: Int, part: FramePart? = nil) -> [UInt8] {
        guard columns > 0, rows > 0, frame.width > 0, frame.height > 0 else { return [] }
        let part = part ?? FramePart(x: 0, y: 0, width: frame.width, height: frame.height)
        let colours = Samples.colours(of: frame, part, columns: columns, rows: rows * 2)
        var text: [UInt8] = []
        text.reserveCapacity(columns * rows * 24)
        text.append(contentsOf: home)
        var foreground: Colour?
        var background: Colour?
        for row in 0..<rows {
            if row > 0 { text.append(contentsOf: newLine) }
            for column in 0..<columns {
                let upper = colours[row * 2 * columns + column]
                let lower = colours[(row * 2 + 1) * columns + column]
                if upper != foreground { text.append(upper, after: foregroundIs) }
                if lower != background { text.append(lower, after: backgroundIs) }
                (foreground, background) = (upper, lower)
                text.append(contentsOf: upperHalf)
            }
        }
        text.append(contentsOf: plain)
        return text
    }

    private static let home = Array("\u{1b}[H".utf8)
    private static let newLine = Array("\r\n".utf8)
    private static let upperHalf = Array("\u{2580}".utf8)
    private static let foregroundIs = Array("\u{1b}[38;2".utf8)
    private static let backgroundIs = Array("\u{1b}[48;2".utf8)
    /// The parts of a colour, each after a semicolon.
    fileprivate static let numbers = (0...255).map { Array(";\($0)".utf8) }
    private static let plain = Array("\u{1b}[0m".utf8)

    struct Colour: Equatable {
        var red: UInt8
        var green: UInt8
        var blue: UInt8
    }

    /// The mean colour of each field of a grid, from at most 4 x 4 points of it.
    private enum Samples {
        private static let points = 4

        static func colours(of frame: VideoFrame, _ part: FramePart, columns: Int, rows: Int) -> [Colour] {
            let luma = means(frame, .luma, part, columns, rows)
            let half = FramePart(
                x: part.x / 2, y: part.y / 2, width: (part.width + 1) / 2, height: (part.height + 1) / 2)
            let blue = means(frame, .chromaBlue, half, columns, rows)
            let red = means(frame, .chromaRed, half, columns, rows)
            return (0..<columns * rows).map { colour(luma[$0], blue[$0], red[$0]) }
        }

        private static func means(
            _ frame: VideoFrame, _ plane: VideoPlane, _ part: FramePart, _ columns: Int, _ rows: Int
        ) -> [Int] {
            frame.withPlane(plane) { bytes, stride in
                guard bytes.byteCount >= (part.y + part.height - 1) * stride + part.x + part.width else {
                    return [Int](repeating: plane == .luma ? 16 : 128, count: columns * rows)
                }
                let across = (0..<columns * points).map { part.x + ($0 * 2 + 1) * part.width / (columns * points * 2) }
                let down = (0..<rows * points).map {
                    (part.y + ($0 * 2 + 1) * part.height / (rows * points * 2)) * stride
                }
                var sums = [Int](repeating: 0, count: columns * rows)
                for y in 0..<rows * points {
                    let line = y / points * columns
                    for x in 0..<columns * points {
                        sums[line + x / points] += Int(
                            bytes.unsafeLoad(fromByteOffset: down[y] + across[x], as: UInt8.self))
                    }
                }
                return sums.map { $0 / (points * points) }
            }
        }

        /// BT.601 with limited range, in 8-bit fixed point.
        private static func colour(_ luma: Int, _ blue: Int, _ red: Int) -> Colour {
            let bright = 298 * (luma - 16)
            let u = blue - 128
            let v = red - 128
            func clamped(_ value: Int) -> UInt8 { UInt8(min(max((value + 128) >> 8, 0), 255)) }
            return Colour(
                red: clamped(bright + 409 * v), green: clamped(bright - 100 * u - 208 * v),
                blue: clamped(bright + 516 * u))
        }
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ colour: TerminalPicture.Colour, after begin: [UInt8]) {
        self += begin
        for part in [colour.red, colour.green, colour.blue] { self += TerminalPicture.numbers[Int(part)] }
        append(UInt8(ascii: "m"))
    }
}

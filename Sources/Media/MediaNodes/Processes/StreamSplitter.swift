import FrameSocket

/// Splits a program's output into frames. Receives bytes and returns frames; holds at most one frame.
struct StreamSplitter: Sendable {
    /// The most bytes of one encoded frame.
    static let mostBytes = 16 << 20

    /// Why the bytes cannot have the stated format.
    struct Fault: Error { let reason: String }

    private enum Cutter: Sendable {
        case raw(Int)
        case jpeg(JPEGSplitter)
        case annexB(AnnexBSplitter)
    }

    private let stated: FrameFormat
    private var cutter: Cutter
    private var waiting: [UInt8] = []
    private(set) var bytes = 0
    private var pictures = 0
    /// The bytes behind the last raw frame at the end of the output.
    private var rest = 0

    init(_ stated: FrameFormat) {
        self.stated = stated
        cutter =
            switch stated.encoding {
            case .mjpeg: .jpeg(JPEGSplitter())
            case .h264: .annexB(AnnexBSplitter())
            default: .raw(stated.bytesPerFrame)
            }
    }

    /// How many bytes are useful to read at a time.
    var appetite: Int {
        if case .raw(let size) = cutter { return max(4096, min(size - waiting.count, 1 << 20)) }
        return 1 << 16
    }

    /// Calls `body` with each complete frame.
    mutating func append(_ bytes: [UInt8], _ body: ([UInt8]) -> Void) throws(Fault) {
        self.bytes += bytes.count
        waiting += bytes
        while let end = try nextEnd() {
            let picture = Array(waiting[..<end])
            waiting.removeSubrange(..<end)
            if let fault = stated.fault(of: picture) { throw Fault(reason: "a frame is wrong: \(fault)") }
            pictures += 1
            body(picture)
        }
        if case .raw = cutter { return }
        guard waiting.count <= Self.mostBytes else {
            throw Fault(reason: "more than \(Self.mostBytes >> 20) MiB arrived without the end of a frame")
        }
    }

    /// The end of the output: the rest may be a complete frame of H.264, whose end is not marked.
    mutating func finish(_ body: ([UInt8]) -> Void) {
        if case .annexB(let splitter) = cutter, splitter.hasPicture, stated.fault(of: waiting) == nil {
            pictures += 1
            body(waiting)
        }
        if case .raw = cutter { rest = waiting.count }
        waiting = []
    }

    /// The fault if bytes arrived without a frame, or if the output has finished within a raw frame.
    ///
    /// - Parameter seconds: for how long bytes arrived.
    func lack(after seconds: Double) -> Fault? {
        guard bytes > 0, pictures == 0 || rest > 0 else { return nil }
        guard case .raw(let size) = cutter else {
            return Fault(reason: "\(bytes) bytes arrived without a complete frame")
        }
        let end = "its \(bytes) bytes end \(pictures == 0 ? bytes : rest) bytes into a frame of \(size)"
        let guess = RawSizeGuess(stated).formats(of: bytes, within: seconds)
        return Fault(reason: end + (guess.map { "; they would be \($0)" } ?? ""))
    }

    private mutating func nextEnd() throws(Fault) -> Int? {
        switch cutter {
        case .raw(let size):
            return waiting.count >= size ? size : nil
        case .jpeg(var splitter):
            defer { cutter = .jpeg(splitter) }
            let skipped = try splitter.skip(waiting)
            if skipped > 0 { waiting.removeSubrange(..<skipped) }
            return try splitter.end(waiting)
        case .annexB(var splitter):
            defer { cutter = .annexB(splitter) }
            return splitter.end(waiting)
        }
    }
}

/// Finds the beginning and end of a JPEG by its segments, because their data may look like an end.
struct JPEGSplitter: Sendable {
    /// How many bytes between two JPEGs are skipped, such as the headers of a multipart stream.
    private static let mostBetween = 65_536

    private var position = 0
    private var isInScan = false
    private var passedOver = 0

    /// How many bytes precede the next JPEG.
    mutating func skip(_ bytes: [UInt8]) throws(StreamSplitter.Fault) -> Int {
        guard position == 0 else { return 0 }
        var index = 0
        while index + 1 < bytes.count, !(bytes[index] == 0xff && bytes[index + 1] == 0xd8) { index += 1 }
        passedOver += index
        guard passedOver <= Self.mostBetween else {
            throw StreamSplitter.Fault(reason: "\(Self.mostBetween) bytes arrived without a JPEG")
        }
        return index
    }

    /// The end of the JPEG that begins at 0. Nil if more bytes are needed.
    mutating func end(_ bytes: [UInt8]) throws(StreamSplitter.Fault) -> Int? {
        if position == 0 {
            guard bytes.count >= 2, bytes[0] == 0xff, bytes[1] == 0xd8 else { return nil }
            (position, isInScan) = (2, false)
        }
        while position + 1 < bytes.count {
            if isInScan {
                // Data of a scan: 0xff is followed by 0 in data, and by a number in a restart marker.
                if bytes[position] == 0xff, bytes[position + 1] != 0, !(0xd0...0xd7).contains(bytes[position + 1]),
                    bytes[position + 1] != 0xff
                {
                    isInScan = false
                } else {
                    position += 1
                }
                continue
            }
            guard bytes[position] == 0xff else {
                throw StreamSplitter.Fault(reason: "a JPEG lacks a required marker")
            }
            let marker = bytes[position + 1]
            if marker == 0xd9 {
                defer { (position, passedOver) = (0, 0) }
                return position + 2
            }
            if marker == 0xff {
                position += 1
                continue
            }
            guard position + 3 < bytes.count else { return nil }
            let length = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
            guard length >= 2 else {
                throw StreamSplitter.Fault(reason: "a segment of a JPEG is shorter than its length")
            }
            guard position + 2 + length < bytes.count else { return nil }
            position += 2 + length
            isInScan = marker == 0xda
        }
        return nil
    }
}

/// Finds the end of a frame of H.264: a unit that can only precede the next one (H.264, section 7.4.1.2.3).
struct AnnexBSplitter: Sendable {
    private var position = 0
    /// Whether a slice of the frame has arrived.
    private(set) var hasPicture = false

    mutating func end(_ bytes: [UInt8]) -> Int? {
        while position + 4 < bytes.count {
            // A start code has no byte above 1, so most data is skipped three bytes at a time.
            if bytes[position + 2] > 1 {
                position += 3
                continue
            }
            guard bytes[position] == 0, bytes[position + 1] == 0, bytes[position + 2] == 1 else {
                position += 1
                continue
            }
            let type = bytes[position + 3] & 0x1f
            let isSlice = (1...5).contains(type)
            // The number of a slice's first macroblock is 0 if its first bit is 1.
            let begins =
                isSlice
                ? bytes[position + 4] & 0x80 != 0 && type != 3 && type != 4
                : [6, 7, 8, 9].contains(type) || (14...18).contains(type)
            if hasPicture, begins {
                // A zero before the start code belongs to it.
                let end = position > 0 && bytes[position - 1] == 0 ? position - 1 : position
                (position, hasPicture) = (0, false)
                return end
            }
            if isSlice { hasPicture = true }
            position += 4
        }
        return nil
    }
}

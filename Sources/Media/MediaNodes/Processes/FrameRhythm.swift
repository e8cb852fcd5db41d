import FrameSocket

/// Notices raw frames of another size than stated by the pieces in which they come: a live program writes a frame, and then
/// nothing until the next one. Receives the times, in nanoseconds.
struct FrameRhythm: Sendable {
    /// So many equal pieces in a row, which come at about the stated rate, are frames.
    private static let enough = 10
    private static let tolerance = 0.3

    private let stated: FrameFormat
    /// A shorter silence is within a piece.
    private let pause: UInt64
    private var isTold = false
    /// The present piece.
    private var piece = 0
    private var pieceBegin: UInt64 = 0
    /// When the last bytes came.
    private var last: UInt64?
    /// The length of the last pieces, how many in a row have had it, and when the first of them began.
    private var (length, equal) = (0, 0)
    private var begin: UInt64 = 0

    init(_ stated: FrameFormat) {
        self.stated = stated
        pause = UInt64(0.25e9 / stated.framesPerSecond)
    }

    /// Another program begins.
    mutating func restart() { (last, piece, equal) = (nil, 0, 0) }

    /// Takes the number of bytes that have arrived.
    ///
    /// - Returns: once, the length of frames of another size, and the formats that have it.
    mutating func take(_ bytes: Int, at now: UInt64) -> (length: Int, formats: String)? {
        defer { last = now }
        guard let last, now >= last + pause else {
            if piece == 0 { pieceBegin = now }
            piece += bytes
            return nil
        }
        if piece == length, equal > 0 { equal += 1 } else { (length, equal, begin) = (piece, 1, pieceBegin) }
        (piece, pieceBegin) = (bytes, now)
        guard !isTold, equal >= Self.enough, length != stated.bytesPerFrame else { return nil }
        let pace = Double(equal) / (Double(now - begin) / 1e9) / stated.framesPerSecond
        guard abs(pace - 1) < Self.tolerance, let formats = RawSizeGuess(stated).formats(ofLength: length) else {
            return nil
        }
        isTold = true
        return (length, formats)
    }
}

import MediaGraph

/// Durations of reordered frames by which the length of an MP4 track is that of its display. The element that writes MP4
/// adds the distances between decode times and the last frame's duration, and a reader leaves out frames beyond that.
struct DecodedLength {
    /// The latest end of display so far.
    private var end: UInt64 = 0
    private var lastDecoded: UInt64?
    private var isReordered = false

    /// The duration of a frame; nil to leave it unchanged. All times in nanoseconds.
    mutating func duration(shownAt shown: UInt64, decodedAt decoded: UInt64, duration: UInt64?) -> UInt64? {
        let step = duration ?? lastDecoded.map { decoded > $0 ? decoded - $0 : 0 } ?? 0
        end = max(end, shown &+ step)
        lastDecoded = decoded
        if shown != decoded { isReordered = true }
        return isReordered && end > decoded ? end - decoded : nil
    }
}

/// The times at which the frames of a stream are decoded, of those at which they are displayed: they rise from frame to
/// frame, and none is later than the frame's own. Frames come in the order of their decoding. In nanoseconds.
package struct DecodeTimes: Sendable {
    /// The latest times of display, rising: as many as frames are reordered, and one.
    private var latest: [UInt64] = []
    private var last: UInt64 = 0

    package init() {}

    /// The time of the next frame. `reordered` is how many frames at most are decoded before one that is displayed before
    /// them. When it changes, a keyframe comes.
    package mutating func next(displayedAt time: UInt64, reordered: Int) -> UInt64 {
        if latest.count == reordered + 1 {
            latest[0] = time
            latest.sort()
        } else {
            latest = Array(repeating: time, count: reordered + 1)
        }
        // The first frames lie close together instead of at one time: containers store the distances, in milliseconds.
        last = max(last, min(time, max(latest[0], last + 1_000_000)))
        return last
    }
}

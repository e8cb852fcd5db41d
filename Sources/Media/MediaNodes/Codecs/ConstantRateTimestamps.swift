/// Timestamps and durations for an encoder as if its frames came at the rate of their format, whatever frames were skipped.
///
/// libvpx takes a gap between frames for a lower frame rate. The frame after a gap of 0.4 s at 460 kbit/s was seen to have
/// 98 kB instead of 2, and the ones after it 1.7 times their bits for a second. libwebrtc hides gaps from it too.
struct ConstantRateTimestamps: Sendable {
    /// The times of a frame, in nanoseconds.
    struct Frame: Sendable, Hashable {
        var timestamp: UInt64
        /// Nil if it is not known. Files of a variable rate state the gap that follows.
        var duration: UInt64?
    }

    /// More frames than an encoder holds.
    private static let remembered = 16
    private static let usualRate = 30.0

    private var framesPerSecond = Self.usualRate
    /// The place of the next frame among those of a constant rate. Nil before the first one.
    private var next: Double?
    /// Whether the next frame begins a segment, before whose start no time may be.
    private var beginsSegment = true
    private var frames: [(timestamp: UInt64, original: Frame)] = []

    /// - Parameter rate: of the format. Nil if it has none.
    mutating func setRate(_ rate: Double?) {
        let rate = rate.flatMap { $0 > 0 ? $0 : nil } ?? Self.usualRate
        guard rate != framesPerSecond else { return }
        next = next.map { ($0 * rate / framesPerSecond).rounded(.up) + 1 }
        framesPerSecond = rate
    }

    mutating func beginSegment() { beginsSegment = true }

    /// The times for the encoder. The timestamp is later than the one before.
    mutating func replace(_ original: Frame) -> Frame {
        let place = (Double(original.timestamp) * framesPerSecond / 1e9).rounded(.up)
        let index = beginsSegment ? max(place, next ?? place) : next ?? place
        (next, beginsSegment) = (index + 1, false)
        // Between two ticks of the frame rate, because elements round down to them.
        let timestamp = UInt64((index + 0.5) / framesPerSecond * 1e9)
        frames.append((timestamp, original))
        if frames.count > Self.remembered { frames.removeFirst() }
        return Frame(timestamp: timestamp, duration: UInt64((1e9 / framesPerSecond).rounded(.up)))
    }

    /// The times of the frame that the encoder got with this timestamp. Nil if they are not known.
    mutating func original(of timestamp: UInt64) -> Frame? {
        guard let place = frames.firstIndex(where: { $0.timestamp == timestamp }) else { return nil }
        defer { frames.removeFirst(place + 1) }
        return frames[place].original
    }
}

/// Judges the frames of a stream: finds damaged ones, and replaces wrong timestamps. It is told the time.
package struct FrameCheck: Sendable {
    package struct Counts: Sendable, Hashable {
        /// Frames that the camera numbered but did not deliver.
        package var lost = 0
        /// Frames that the driver marked as corrupt, and incomplete ones.
        package var damaged = 0
        /// Those of them that came since the last usable one.
        package var damagedLately = 0
        /// Frames whose timestamp was replaced.
        package var wrongTimes = 0

        package init() {}
    }

    package enum Verdict: Sendable, Hashable {
        /// With the time of the capture, later than that of the frame before.
        case usable(Duration)
        case damaged
    }

    /// A frame is never later than this: drivers have few buffers.
    private static let latest = Duration.seconds(2)
    private static let step = Duration.microseconds(1)

    private let leastBytes: [Int]
    private let size: FrameSize
    private let isJPEG: Bool
    private let isProgressive: Bool
    /// Whether a JPEG of the stream had an end. Some cameras never write one.
    private var hasEnds = false
    /// The time of the frame before.
    private var last: Duration?
    /// Its timestamp, if it was near the arrival.
    private var lastStamp: Duration?
    private var number: UInt32?
    package private(set) var counts = Counts()

    package init(_ layout: CaptureLayout, counts: Counts = Counts()) {
        leastBytes = layout.leastBytes
        size = layout.mode.size
        isJPEG = layout.mode.format.isJPEG
        isProgressive = layout.isProgressive
        self.counts = counts
    }

    /// Judges a frame that arrives now.
    package mutating func judge(_ frame: CapturedFrame, at now: Duration) -> Verdict {
        // A number that does not increase means that the device restarted its count, or counts nothing.
        if let number, frame.sequence > number { counts.lost += Int(frame.sequence - number - 1) }
        number = frame.sequence
        guard !frame.isCorrupt, isComplete(frame) else {
            counts.damaged += 1
            counts.damagedLately += 1
            return .damaged
        }
        counts.damagedLately = 0
        return .usable(time(of: frame, now))
    }

    /// The rule: the driver's time, if it is one of the last two seconds, and later than the driver's time of the frame
    /// before; or else the time of the arrival.
    private mutating func time(of frame: CapturedFrame, _ now: Duration) -> Duration {
        var time = now
        if let stamp = frame.timestamp {
            // Drivers may give the end of a frame before it is there, so a little ahead is usual.
            let isNear = stamp <= now + Self.latest && stamp >= now - Self.latest
            let isLater = lastStamp.map { stamp > $0 } ?? true
            lastStamp = isNear ? stamp : nil
            if isNear, isLater { time = min(stamp, now) } else { counts.wrongTimes += 1 }
        }
        if let last { time = max(time, last + Self.step) }
        last = time
        return time
    }

    private mutating func isComplete(_ frame: CapturedFrame) -> Bool {
        guard frame.pieces == leastBytes.count, zip(frame.lengths, leastBytes).allSatisfy({ $0 >= $1 }) else {
            return false
        }
        if !isJPEG { return true }
        let (begins, ends, picture) = frame.withBytes(plane: 0) { bytes in
            (bytes.beginsJPEG, bytes.endsJPEG, bytes.sizeOfJPEG)
        }
        if ends { hasEnds = true }
        return begins && (ends || !hasEnds) && (picture.map(isExpected) ?? true)
    }

    /// Whether a decoder can read a frame: a JPEG needs a frame header.
    package func isReadable(_ frame: CapturedFrame) -> Bool {
        !isJPEG || frame.withBytes(plane: 0) { $0.beginsJPEG && $0.sizeOfJPEG != nil }
    }

    /// Whether a frame is a JPEG without an end. Those of some cameras never have one.
    package func isOpenEnded(_ frame: CapturedFrame) -> Bool {
        isJPEG && !frame.withBytes(plane: 0) { $0.endsJPEG }
    }

    /// Whether a JPEG has the size of the mode. A decoder would make any size of it. Some cameras round it up to whole
    /// blocks.
    private func isExpected(_ picture: FrameSize) -> Bool {
        func isNear(_ side: Int, _ wish: Int) -> Bool { abs(side - wish) < 16 }
        return isNear(picture.width, size.width)
            && (isNear(picture.height, size.height) || !isProgressive && isNear(picture.height, size.height / 2))
    }
}

extension RawSpan {
    /// SOI (ITU-T T.81, table B.1)
    fileprivate var beginsJPEG: Bool { byteCount >= 4 && self[0] == 0xff && self[1] == 0xd8 }

    /// EOI. Cameras fill the rest of their buffer with zeros.
    fileprivate var endsJPEG: Bool {
        var end = byteCount
        while end > 2, self[end - 1] == 0 { end -= 1 }
        return end > 2 && self[end - 1] == 0xd9 && self[end - 2] == 0xff
    }

    /// The size in the frame header (ITU-T T.81, B.2.2). Nil without a header.
    fileprivate var sizeOfJPEG: FrameSize? {
        func word(_ place: Int) -> Int { Int(self[place]) << 8 | Int(self[place + 1]) }
        var place = 2
        while place + 3 < byteCount {
            guard self[place] == 0xff, self[place + 1] != 0xff else {
                place += 1
                continue
            }
            switch self[place + 1] {
            // Markers without a length, and escaped bytes.
            case 0, 1, 0xd0...0xd8: place += 2
            // The data begins, or ends.
            case 0xd9, 0xda: return nil
            // SOF; not DHT, JPG and DAC.
            case 0xc0...0xc3, 0xc5...0xc7, 0xc9...0xcb, 0xcd...0xcf:
                return place + 8 < byteCount ? FrameSize(word(place + 7), word(place + 5)) : nil
            default: place += 2 + Swift.max(word(place + 2), 2)
            }
        }
        return nil
    }

    private subscript(place: Int) -> UInt8 { unsafeLoad(fromByteOffset: place, as: UInt8.self) }
}

/// Notices that a camera delivers fewer frames than its mode has. It is told the time.
package struct RateWatch: Sendable {
    package enum Change: Sendable, Hashable {
        /// Frames in a second.
        case fell(to: Double)
        case returned
    }

    /// Times of frames vary; a rate counts for so long.
    private static let window = Duration.seconds(2)

    private let rate: Double?
    private var first: (time: Duration, number: UInt32)?
    private var frames = 0
    /// The number of windows that were too slow, one after the other.
    private var slow = 0
    private var isSlow = false
    /// Frames in a second that arrived in the last two windows.
    private var arrived: (latest: Double, former: Double?)?

    /// Frames in a second that arrive: as measured, or else as the mode has them. One pause does not matter.
    package var pace: Double? {
        guard let arrived, let former = arrived.former else { return rate }
        return max(arrived.latest, former)
    }

    package init(_ layout: CaptureLayout) {
        rate = layout.mode.rate?.perSecond
    }

    /// A frame was captured. Frames that the machine lost count as captured.
    package mutating func captured(at time: Duration, number: UInt32) -> Change? {
        guard let first else {
            (self.first, frames) = ((time, number), 0)
            return nil
        }
        frames += 1
        guard time - first.time >= Self.window else { return nil }
        arrived = (Double(frames) / ((time - first.time) / .seconds(1)), arrived?.latest)
        guard let rate else {
            (self.first, frames) = ((time, number), 0)
            return nil
        }
        let count = number > first.number ? Int(number - first.number) : frames
        let actual = Double(count) / ((time - first.time) / .seconds(1))
        (self.first, frames) = ((time, number), 0)
        slow = actual < rate * 0.75 ? slow + 1 : 0
        // A pause makes one window slow.
        if slow == 2, !isSlow {
            isSlow = true
            return .fell(to: actual)
        }
        if isSlow, actual > rate * 0.9 {
            isSlow = false
            return .returned
        }
        return nil
    }
}

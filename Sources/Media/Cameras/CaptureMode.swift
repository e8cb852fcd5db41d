/// The width and height of a frame, in pixels.
package struct FrameSize: Sendable, Hashable, Codable, CustomStringConvertible {
    package var width: Int
    package var height: Int

    package init(_ width: Int, _ height: Int) {
        self.width = width
        self.height = height
    }

    /// Reads `1280x720`. Nil for another form, and for sizes that are not positive.
    package init?(_ text: String) {
        let parts = text.split(separator: "x", omittingEmptySubsequences: false)
        guard parts.count == 2, let width = Int(parts[0]), let height = Int(parts[1]), width > 0, height > 0,
            width <= Self.longest, height <= Self.longest
        else { return nil }
        self.init(width, height)
    }

    /// The longest side of a frame.
    package static let longest = 16_384

    /// Width times height, or the largest number.
    package var pixels: Int {
        let (pixels, isTooLarge) = width.multipliedReportingOverflow(by: height)
        return isTooLarge ? .max : pixels
    }
    package var description: String { "\(width)x\(height)" }

    package init(from decoder: any Decoder) throws {
        self = try decoded(decoder, "a size such as 1280x720, with sides of 1 to \(Self.longest)", FrameSize.init)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

/// Frames per second as a fraction, such as 30 or 30000/1001. It is the inverse of V4L2's frame interval.
package struct FrameRate: Sendable, Hashable, Codable, Comparable, CustomStringConvertible {
    package let frames: Int
    package let seconds: Int

    /// Both are positive. The fraction is reduced.
    package init(_ frames: Int, per seconds: Int = 1) {
        precondition(frames > 0 && seconds > 0)
        let divisor = greatestCommonDivisor(frames, seconds)
        self.frames = frames / divisor
        self.seconds = seconds / divisor
    }

    /// Reads `30`, `7.5` or `30000/1001`. Nil for another form, and for rates that are not positive.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        if parts.count == 2 {
            guard let frames = Int(parts[0]), let seconds = Int(parts[1]) else { return nil }
            self.init(checked: frames, seconds)
        } else {
            guard parts.count == 1, let number = Double(text), (0..<1e6).contains(number) else { return nil }
            self.init(checked: Int((number * 1000).rounded()), 1000)
        }
    }

    /// The fraction for a number; 29.97 and similar rates get the denominator of television. Nil unless it is positive.
    package init?(perSecond rate: Double) {
        guard rate > 0, rate < 1e6 else { return nil }
        let television = (rate * 1001 / 1000).rounded()
        if rate != rate.rounded(), abs(television * 1000 / 1001 - rate) < 0.01 {
            self.init(checked: Int(television) * 1000, 1001)
        } else {
            self.init(checked: Int((rate * 1000).rounded()), 1000)
        }
    }

    private init?(checked frames: Int, _ seconds: Int) {
        guard (1...Int(UInt32.max)).contains(frames), (1...Int(UInt32.max)).contains(seconds) else { return nil }
        self.init(frames, per: seconds)
    }

    /// Frames per second.
    package var perSecond: Double { Double(frames) / Double(seconds) }

    /// From frame to frame, rounded to nanoseconds.
    package var interval: Duration { .nanoseconds(Int64((1e9 * Double(seconds) / Double(frames)).rounded())) }

    /// `30`, or `30000/1001` where a whole number would be wrong.
    package var description: String { seconds == 1 ? "\(frames)" : "\(frames)/\(seconds)" }

    /// `29.97`: at most two decimals, for people.
    package var short: String {
        let hundredths = Int((perSecond * 100).rounded())
        let rest = hundredths % 100
        if rest == 0 { return "\(hundredths / 100)" }
        return "\(hundredths / 100)." + (rest % 10 == 0 ? "\(rest / 10)" : rest < 10 ? "0\(rest)" : "\(rest)")
    }

    package static func < (one: FrameRate, other: FrameRate) -> Bool {
        let left = one.frames.multipliedFullWidth(by: other.seconds)
        let right = other.frames.multipliedFullWidth(by: one.seconds)
        return (left.high, left.low) < (right.high, right.low)
    }

    package init(from decoder: any Decoder) throws {
        self = try decoded(decoder, "a rate in frames/s such as 30 or 30000/1001, at most 1000", FrameRate.init)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

/// The sizes that a format has: one, or all on a grid (`V4L2_FRMSIZE_TYPE_STEPWISE` and `_CONTINUOUS`).
package struct SizeRange: Sendable, Hashable {
    package let smallest: FrameSize
    package let largest: FrameSize
    /// The distance between neighbouring sizes in pixels, at least 1.
    package let step: FrameSize

    package init(_ smallest: FrameSize, _ largest: FrameSize, step: FrameSize = FrameSize(1, 1)) {
        self.smallest = smallest
        self.largest = largest
        self.step = step
    }

    package init(_ size: FrameSize) {
        self.init(size, size)
    }

    package var isDiscrete: Bool { smallest == largest }

    /// The part whose sizes a frame can have: some drivers give what a number can hold. Nil without one.
    package var usable: SizeRange? {
        let longest = FrameSize.longest
        let first = FrameSize(max(smallest.width, 1), max(smallest.height, 1))
        let last = FrameSize(min(largest.width, longest), min(largest.height, longest))
        guard first.width <= last.width, first.height <= last.height else { return nil }
        return SizeRange(first, last, step: FrameSize(max(step.width, 1), max(step.height, 1)))
    }

    /// The smallest size of the range that covers `size`; a side that is too large becomes the largest.
    package func nearest(to size: FrameSize) -> FrameSize {
        FrameSize(
            Self.nearest(size.width, smallest.width, largest.width, step.width),
            Self.nearest(size.height, smallest.height, largest.height, step.height))
    }

    private static func nearest(_ wish: Int, _ smallest: Int, _ largest: Int, _ step: Int) -> Int {
        if wish <= smallest { return smallest }
        let step = max(step, 1)
        let steps = (wish - smallest + step - 1) / step
        let last = smallest + max(0, largest - smallest) / step * step
        return min(smallest + steps * step, last)
    }
}

/// The rates that a format has in a size.
package enum RateOffer: Sendable, Hashable {
    /// Rates of a list. An empty list means that the driver lists none: the rate is the one that it has now.
    case list([FrameRate])
    /// Any rate between two (`V4L2_FRMIVAL_TYPE_STEPWISE` and `_CONTINUOUS`). The driver rounds to its own steps.
    case range(slowest: FrameRate, fastest: FrameRate)

    /// The slowest rate that is at least `wish`, or else the fastest. Nil without a list.
    package func nearest(to wish: FrameRate) -> FrameRate? {
        switch self {
        case .list(let rates):
            rates.filter { $0.perSecond >= wish.perSecond * Self.tolerance }.min() ?? rates.max()
        case .range(let slowest, let fastest): min(max(wish, slowest), fastest)
        }
    }

    /// 30000/1001 frames/s serve a wish for 30.
    package static let tolerance = 0.99
}

/// A pixel format of a camera with its sizes and rates (`VIDIOC_ENUM_FMT`, `_ENUM_FRAMESIZES`, `_ENUM_FRAMEINTERVALS`).
package struct FormatOffer: Sendable, Hashable {
    package struct Size: Sendable, Hashable {
        package let range: SizeRange
        /// Those of the largest size.
        package let rates: RateOffer

        package init(_ range: SizeRange, _ rates: RateOffer) {
            self.range = range
            self.rates = rates
        }
    }

    package let format: FourCC
    /// The driver's description, such as `Motion-JPEG`.
    package let description: String
    /// Whether libraries compute the format from another one of the device (`V4L2_FMT_FLAG_EMULATED`).
    package let isEmulated: Bool
    package let sizes: [Size]

    package init(_ format: FourCC, description: String = "", isEmulated: Bool = false, sizes: [Size]) {
        self.format = format
        self.description = description.cleaned
        self.isEmulated = isEmulated
        self.sizes = sizes
    }
}

/// A capture mode: the parameters of `VIDIOC_S_FMT` and `VIDIOC_S_PARM`.
package struct CaptureMode: Sendable, Hashable, CustomStringConvertible {
    package let format: FourCC
    package let size: FrameSize
    /// Nil keeps the device's rate, for drivers that list none.
    package let rate: FrameRate?

    package init(_ format: FourCC, _ size: FrameSize, _ rate: FrameRate?) {
        self.format = format
        self.size = size
        self.rate = rate
    }

    package var description: String { "\(format) \(size)" + (rate.map { " at \($0.short) frames/s" } ?? "") }
}

/// The mode that a driver chose, and where it puts the pixels.
package struct CaptureLayout: Sendable, Hashable {
    package struct Plane: Sendable, Hashable {
        /// Bytes from row to row; 0 for compressed formats.
        package let stride: Int
        /// Bytes of the plane's memory.
        package let bytes: Int

        package init(stride: Int, bytes: Int) {
            self.stride = stride
            self.bytes = bytes
        }
    }

    /// The rate is nil if the driver does not report one.
    package let mode: CaptureMode
    /// Whether a frame has all its lines, in order.
    package let isProgressive: Bool
    /// The pieces of memory of a frame. Most formats have one, also for several colour planes.
    package let planes: [Plane]

    package init(_ mode: CaptureMode, isProgressive: Bool = true, planes: [Plane]) {
        self.mode = mode
        self.isProgressive = isProgressive
        self.planes = planes
    }
}

private func greatestCommonDivisor(_ one: Int, _ other: Int) -> Int {
    var (one, other) = (one, other)
    while other != 0 { (one, other) = (other, one % other) }
    return one
}

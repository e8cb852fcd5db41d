public import MediaGraph

// Apple's names of this SDK's types, for code that was written for iOS. (Linux)

/// A time or a duration in seconds.
public typealias CFTimeInterval = Double
/// Apple's name of a frame with its capture time.
public typealias CMSampleBuffer = SampleBuffer
/// Apple's name of a time in nanoseconds.
public typealias CMTime = MediaTime
/// The numerator of a time.
public typealias CMTimeValue = Int64
/// The denominator of a time: units per second.
public typealias CMTimeScale = Int32

/// The frame of a sample buffer.
// swift-format-ignore: AlwaysUseLowerCamelCase
public func CMSampleBufferGetImageBuffer(_ sampleBuffer: CMSampleBuffer) -> CVImageBuffer? { sampleBuffer.imageBuffer }

/// The capture time of a sample buffer.
// swift-format-ignore: AlwaysUseLowerCamelCase
public func CMSampleBufferGetPresentationTimeStamp(_ sampleBuffer: CMSampleBuffer) -> CMTime {
    sampleBuffer.presentationTimeStamp
}

/// The time `value / timescale` seconds after the start of the clock.
// swift-format-ignore: AlwaysUseLowerCamelCase
public func CMTimeMake(value: Int64, timescale: Int32) -> CMTime { CMTime(value: value, timescale: timescale) }

/// In seconds.
// swift-format-ignore: AlwaysUseLowerCamelCase
public func CMTimeGetSeconds(_ time: CMTime) -> Double { time.seconds }

extension MediaTime {
    /// The start of the clock.
    public static var zero: MediaTime { MediaTime(nanoseconds: 0) }
    /// No time.
    public static var invalid: MediaTime { MediaTime(nanoseconds: .max) }

    /// Whether this is a time, and not `invalid`.
    public var isValid: Bool { self != .invalid }

    /// The time `value / timescale` seconds after the start of the clock, which is that of the frames' capturer. The start for
    /// a time before it, and `invalid` without a positive timescale.
    public init(value: Int64, timescale: Int32) {
        guard timescale > 0 else {
            self = .invalid
            return
        }
        let whole = (Int128(value) * 1_000_000_000) / Int128(timescale)
        self.init(nanoseconds: UInt64(clamping: whole))
    }

    /// The time this many seconds after the start of the clock, rounded to a nanosecond.
    ///
    /// - Parameter preferredTimescale: ignored: times are exact to a nanosecond.
    public init(seconds: Double, preferredTimescale: Int32) {
        self.init(nanoseconds: UInt64(exactly: (max(0, seconds) * 1e9).rounded()) ?? .max)
    }

    /// Seconds after the start of the clock. Not a number for `invalid`.
    public var seconds: Double { isValid ? Double(nanoseconds) / 1e9 : .nan }
}

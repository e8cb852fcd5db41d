/// One of the three planes of an I420 picture.
@frozen
public enum VideoPlane: Int, Sendable, CaseIterable {
    /// Full size, 16 black to 235 white.
    case luma = 0
    /// Blue difference, half the width and half the height (rounded up).
    case chromaBlue = 1
    /// Red difference, half the width and half the height (rounded up).
    case chromaRed = 2

    /// The only plane of packed formats, such as BGRx.
    public static var packed: VideoPlane { .luma }
    /// The plane of both chromas of NV12.
    public static var chroma: VideoPlane { .chromaBlue }
}

/// Where a frame's samples live. Pictures stay in the memory that the decoder or camera wrote.
public protocol VideoFrameStorage: AnyObject, Sendable {
    /// Calls `body` with the bytes of one plane and the distance between its rows in bytes.
    func withPlane<Result>(_ plane: VideoPlane, _ body: (RawSpan, Int) throws -> Result) rethrows -> Result
}

/// A raw picture, always I420 (8 bits, 4:2:0, three planes).
///
/// A frame keeps the buffer it came in alive and copies nothing. Capturers and decoders reuse a handful of buffers:
/// keep a frame for as long as you look at it, and copy the samples that you want to keep longer.
public struct VideoFrame: Sendable {
    /// Width in pixels.
    public let width: Int
    /// Height in pixels.
    public let height: Int
    /// For a captured frame, when it was captured. For a received frame, the moment on this machine's clock that the
    /// jitter buffer gave it (arrival smoothed by the sender's timestamps), not when the far end captured it.
    public let captureTime: MediaTime
    /// The RTP timestamp that a received frame carried; nil for a captured frame.
    public let rtpTimestamp: UInt32?
    /// When the frame was handed to whoever renders it.
    public let handedOver: MediaTime
    public let storage: any VideoFrameStorage

    public init(
        width: Int, height: Int, captureTime: MediaTime, rtpTimestamp: UInt32?, handedOver: MediaTime,
        storage: any VideoFrameStorage
    ) {
        self.width = width
        self.height = height
        self.captureTime = captureTime
        self.rtpTimestamp = rtpTimestamp
        self.handedOver = handedOver
        self.storage = storage
    }

    /// Calls `body` with the bytes of one plane and the distance between its rows in bytes.
    ///
    /// Rows may be longer than the plane is wide. The bytes are valid during the call only.
    public func withPlane<Result>(
        _ plane: VideoPlane, _ body: (RawSpan, _ stride: Int) throws -> Result
    ) rethrows -> Result {
        try storage.withPlane(plane, body)
    }

    /// The frame number that the test pattern drew into the picture, if the picture holds one.
    public var barCode: UInt32? {
        withPlane(.luma) { BarCode.read($0, stride: $1, width: width, height: height) }
    }
}

/// A stretch of sound: interleaved signed 16-bit samples.
public struct AudioChunk: Sendable {
    /// Interleaved samples, `channels` for each moment.
    public let samples: [Int16]
    /// Moments per second.
    public let sampleRate: Int
    public let channels: Int
    /// As for `VideoFrame.captureTime`.
    public let captureTime: MediaTime
    /// The RTP timestamp that the sound carried when it was received; nil for captured sound and for sound that the
    /// decoder made up to conceal a loss.
    public let rtpTimestamp: UInt32?
    /// Root mean square of the samples in decibels below full scale: 0 for a full-scale square wave, -120 for silence.
    public let level: Double

    public init(
        samples: [Int16], sampleRate: Int, channels: Int, captureTime: MediaTime, rtpTimestamp: UInt32?, level: Double
    ) {
        self.samples = samples
        self.sampleRate = sampleRate
        self.channels = channels
        self.captureTime = captureTime
        self.rtpTimestamp = rtpTimestamp
        self.level = level
    }

    /// How long the chunk lasts, in seconds.
    public var seconds: Double { Double(samples.count / max(channels, 1)) / Double(max(sampleRate, 1)) }
}

/// A raw picture that may be changed in place, for as long as the function that was handed it runs.
///
/// Planes lie in the memory that the capturer or the processor before wrote; nothing is copied where nobody else reads it.
public struct MutableVideoFrame {
    /// Width in pixels.
    public let width: Int
    /// Height in pixels.
    public let height: Int
    /// When the picture was captured.
    public let captureTime: MediaTime
    private let access: (VideoPlane, (inout MutableRawSpan, Int) -> Void) -> Void

    public init(
        width: Int, height: Int, captureTime: MediaTime,
        access: @escaping (VideoPlane, (inout MutableRawSpan, Int) -> Void) -> Void
    ) {
        self.width = width
        self.height = height
        self.captureTime = captureTime
        self.access = access
    }

    /// Calls `body` with the bytes of one plane and the distance between its rows in bytes.
    public mutating func withPlane(
        _ plane: VideoPlane, _ body: (_ bytes: inout MutableRawSpan, _ stride: Int) -> Void
    ) {
        access(plane, body)
    }

    /// Fills an I420 picture with one colour: 16 to 235 in luma, 128 in both chromas for grey.
    public mutating func fill(luma: UInt8, chromaBlue: UInt8 = 128, chromaRed: UInt8 = 128) {
        for (plane, value) in [(VideoPlane.luma, luma), (.chromaBlue, chromaBlue), (.chromaRed, chromaRed)] {
            withPlane(plane) { bytes, _ in
                let eight = UInt64(value) &* 0x0101_0101_0101_0101
                var offset = 0
                while offset + 8 <= bytes.byteCount {
                    bytes.storeBytes(of: eight, toByteOffset: offset, as: UInt64.self)
                    offset += 8
                }
                while offset < bytes.byteCount {
                    bytes.storeBytes(of: value, toByteOffset: offset, as: UInt8.self)
                    offset += 1
                }
            }
        }
    }

    /// Draws a frame number that `VideoFrame.barCode` reads again, into a picture with a plane of luma.
    public mutating func draw(barCode number: UInt32) {
        let (width, height) = (width, height)
        withPlane(.luma) { luma, stride in
            BarCode.draw(number, into: &luma, stride: stride, width: width, height: height)
        }
    }
}

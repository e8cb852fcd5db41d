/// A plane of a raw frame. The cases name those of I420; packed formats and NV12 use the aliases.
@frozen
public enum VideoPlane: Int, Sendable, CaseIterable {
    /// Luma at full size, 16 (black) to 235 (white).
    case luma = 0
    /// Blue difference at half the width and half the height, rounded up.
    case chromaBlue = 1
    /// Red difference at half the width and half the height, rounded up.
    case chromaRed = 2

    /// The only plane of packed formats, such as BGRx.
    public static var packed: VideoPlane { .luma }
    /// NV12's plane of interleaved chroma.
    public static var chroma: VideoPlane { .chromaBlue }
}

/// The memory of a frame's samples: the buffer that the decoder or camera wrote.
public protocol VideoFrameStorage: AnyObject, Sendable {
    /// Calls `body` with the bytes of one plane and the distance between its rows in bytes.
    func withPlane<Result>(_ plane: VideoPlane, _ body: (RawSpan, Int) throws -> Result) rethrows -> Result
}

/// A raw frame, always I420 (8 bits, 4:2:0, three planes).
///
/// A frame keeps its buffer alive and copies nothing. Capturers and decoders reuse a handful of buffers: keep a frame
/// only while you read it, and copy the samples that you need longer.
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
    /// When the pipeline handed the frame over to the renderer.
    public let handedOver: MediaTime
    /// The memory of the frame.
    public let storage: any VideoFrameStorage

    /// A frame in memory of the caller's, such as a test's.
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
    /// Rows can be longer than the plane is wide. The bytes are valid only during the call.
    public func withPlane<Result>(
        _ plane: VideoPlane, _ body: (RawSpan, _ stride: Int) throws -> Result
    ) rethrows -> Result {
        try storage.withPlane(plane, body)
    }

    /// The frame number that the test pattern drew into the frame, if there is one.
    public var barCode: UInt32? {
        withPlane(.luma) { BarCode.read($0, stride: $1, width: width, height: height) }
    }
}

/// A buffer of audio: interleaved signed 16-bit samples.
public struct AudioChunk: Sendable {
    /// Interleaved samples: `channels` of them for each sampling time.
    public let samples: [Int16]
    /// Samples per second and channel.
    public let sampleRate: Int
    /// The number of channels.
    public let channels: Int
    /// As for `VideoFrame.captureTime`.
    public let captureTime: MediaTime
    /// The RTP timestamp of received audio; nil for captured audio, and for audio with which the decoder concealed a loss.
    public let rtpTimestamp: UInt32?
    /// Root mean square of the samples in decibels below full scale: 0 for a full-scale square wave, -120 for silence.
    public let level: Double

    /// A buffer of samples, such as a test's.
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

/// A raw frame to write to, valid only during the function that receives it.
///
/// Its planes are the memory that the node upstream wrote. They are copied only if another branch reads the same frame.
public struct MutableVideoFrame {
    /// Width in pixels.
    public let width: Int
    /// Height in pixels.
    public let height: Int
    /// When the frame was captured.
    public let captureTime: MediaTime
    private let access: (VideoPlane, (inout MutableRawSpan, Int) -> Void) -> Void

    /// A frame whose planes `access` passes on, valid while that can be called.
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

    /// Fills an I420 frame with one colour: luma 16 to 235, and 128 in both chroma planes for grey.
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

    /// Draws a frame number that ``VideoFrame/barCode`` reads, into a frame with a plane of luma.
    public mutating func draw(barCode number: UInt32) {
        let (width, height) = (width, height)
        withPlane(.luma) { luma, stride in
            BarCode.draw(number, into: &luma, stride: stride, width: width, height: height)
        }
    }
}

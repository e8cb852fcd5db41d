internal import GStreamerKit
public import MediaGraph
internal import Synchronization

/// A raw frame that an application makes, for `VideoCapturerSource` and `FrameBlender`. Code from iOS calls it `CVPixelBuffer`.
///
/// The memory of released frames is used again, so making one frame after another allocates no memory for their samples.
/// Drawing into a frame that was passed on copies it first: nobody sees it change. Callable on any thread.
public final class PixelBuffer: Sendable {
    /// The layout of the samples.
    public enum Format: Sendable, Hashable, CaseIterable {
        /// Three planes, of luma and of both chroma at half the width and height. The format of all frames of this SDK, which
        /// costs least.
        case i420
        /// Two planes, of luma and of interleaved chroma at half the width and height.
        case nv12
        /// One plane of blue, green, red and an ignored byte: `VideoPlane.packed`.
        case bgra

        fileprivate var name: String {
            switch self {
            case .i420: "I420"
            case .nv12: "NV12"
            case .bgra: "BGRA"
            }
        }
    }

    /// In pixels.
    public let width: Int
    /// In pixels.
    public let height: Int
    /// The layout of the samples.
    public let format: Format
    private let content: Mutex<Picture>

    /// A frame that shows black, or a former frame whose memory it uses: draw all of it. Nil for a width or height outside
    /// of 1 to 16384 pixels.
    public init?(width: Int, height: Int, format: Format = .i420) {
        guard let picture = Picture(format.name, width: width, height: height) else { return nil }
        (self.width, self.height, self.format) = (width, height, format)
        content = Mutex(picture)
    }

    /// A frame of a video, without a copy of its samples, such as one that `FrameView.onFrame` gets.
    public convenience init?(_ frame: VideoFrame) {
        guard let picture = Picture(frame) else { return nil }
        self.init(picture)
    }

    init?(_ picture: Picture) {
        guard let format = Format.allCases.first(where: { $0.name == picture.pixelFormat }) else { return nil }
        (width, height, self.format) = (picture.width, picture.height, format)
        content = Mutex(picture)
    }

    /// The frame as it is now.
    var picture: Picture { content.withLock { $0 } }

    /// 3, 2 or 1.
    public var planeCount: Int { picture.planes }

    /// Calls `body` with the bytes of one plane, valid during the call, and the distance between its rows in bytes, which may be
    /// longer than the plane is wide. A plane that the format lacks has no bytes.
    public func withPlane<Result>(
        _ plane: VideoPlane, _ body: (RawSpan, _ stride: Int) throws -> Result
    ) rethrows -> Result {
        try picture.withPlane(plane, body)
    }

    /// Calls `body` with the frame to draw into it. It must not call other functions of this buffer.
    public func draw(_ body: (inout MutableVideoFrame) -> Void) { content.withLock { $0.draw(body) } }
}

/// A frame with its capture time. Code from iOS calls it `CMSampleBuffer`. Callable on any thread.
public final class SampleBuffer: Sendable {
    /// Never nil.
    public let imageBuffer: PixelBuffer?
    /// When the frame was captured: `MediaTime.now` for a frame of this moment.
    public let presentationTimeStamp: MediaTime

    /// A frame and the time of its capture.
    public init(imageBuffer: PixelBuffer, presentationTimeStamp: MediaTime) {
        (self.imageBuffer, self.presentationTimeStamp) = (imageBuffer, presentationTimeStamp)
    }
}

public import Foundation
public import MediaGraph

/// A view for the frames of a video, as on iOS: here a window, an image file, or a destination that the program reads.
///
/// Attach it to a `LocalVideo` or a `RemoteVideo`, which retains the destination until it is detached. It shows one
/// video at a time. Views belong to the main actor; a program without one uses `FrameView`.
@preconcurrency @MainActor open class UIRenderView: UIView {
    /// The view's id.
    public nonisolated var uuid: String { target.uuid }
    /// Whether the view is attached to a video.
    public nonisolated var isAssignedStream: Bool { target.isAttached }

    /// Called on the callback queue: with true when a video shows its first frame, and with false when the view is detached,
    /// or 2 s after the last frame.
    public var onActive: ((Bool) -> Void)? {
        didSet { target.onActive = onActive.map { Callback($0) } }
    }

    /// How frames fill a window: the whole frame with borders (`scaleAspectFit`, the default), a frame without two of its edges
    /// (`scaleAspectFill`), or out of shape (`scaleToFill`). The other modes mean the default.
    public var videoContentMode = ContentMode.scaleAspectFit {
        didSet { target.setFit(videoContentMode) }
    }

    /// A hidden view shows nothing in its window, and passes frames on.
    open override var isHidden: Bool {
        didSet { target.isHidden = isHidden }
    }

    /// Called with every frame, on a serial queue of the view. A slow function blocks nothing else: at most 8 frames
    /// wait, then the oldest is dropped and counted. (Linux)
    public nonisolated var onFrame: (@Sendable (VideoFrame) -> Void)? {
        get { target.onFrame }
        set { target.onFrame = newValue }
    }

    /// Called once, on the same queue, if the image file cannot be written. There is no retry. (Linux)
    public nonisolated var onError: (@Sendable (ConnectLiveError) -> Void)? {
        get { target.onError }
        set { target.onError = newValue }
    }

    /// Frames dropped because `onFrame` was too slow. (Linux)
    public nonisolated var droppedFrames: Int { target.droppedFrames }
    /// The newest frame. (Linux)
    public nonisolated var latestFrame: VideoFrame? { target.latestFrame }

    nonisolated let target: RenderTarget

    /// A view without a display, for `onFrame` and `latestFrame`.
    public override init() {
        target = RenderTarget(.none)
        super.init()
    }

    /// A view without a display. There are no storyboards.
    public required init?(coder: NSCoder) {
        target = RenderTarget(.none)
        super.init(coder: coder)
    }

    /// A window on the desktop. Throws `window.unavailable` without a display. (Linux)
    public init(windowTitle title: String, width: Int = 960, height: Int = 540) throws {
        target = RenderTarget(try .window(title, width, height))
        super.init()
    }

    /// Writes the first frame to a PNG file. Throws `file.unwritable` if the path cannot be written; `onError` reports
    /// later failures. (Linux)
    public init(imagePath: String) throws {
        target = RenderTarget(try .image(imagePath))
        super.init()
    }
}

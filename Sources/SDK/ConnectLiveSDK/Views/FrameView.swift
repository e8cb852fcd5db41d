public import Foundation
public import MediaGraph

/// A destination for the frames of a video in a program without a main actor: a function, a window, an image file, or the
/// terminal. Callable on any thread. (Linux)
///
/// Attach it to a `LocalVideo` or a `RemoteVideo`, which retains the destination until it is detached. It shows one
/// video at a time. `UIRenderView` is its counterpart for code from iOS.
public final class FrameView: Sendable {
    let target: RenderTarget

    /// A view without a display, for `onFrame` and `latestFrame`.
    ///
    /// - Parameter onFrame: see the property
    public init(onFrame: (@Sendable (VideoFrame) -> Void)? = nil) {
        target = RenderTarget(.none)
        target.onFrame = onFrame
    }

    /// A window on the desktop. Throws `window.unavailable` without a display.
    public init(windowTitle title: String, width: Int = 960, height: Int = 540) throws {
        target = RenderTarget(try .window(title, width, height))
    }

    /// Writes the first frame to a PNG file. Throws `file.unwritable` if the path cannot be written; `onError` reports
    /// later failures.
    public init(imagePath: String) throws {
        target = RenderTarget(try .image(imagePath))
    }

    /// Draws frames as coloured half blocks, at most 10 a second, and restores the terminal when it is released. Does not close
    /// the handle, which must stay open.
    ///
    /// - Parameter terminal: such as `FileHandle.standardOutput`
    public init(terminal: FileHandle) {
        target = RenderTarget(.terminal(terminal))
    }

    /// The view's id.
    public var uuid: String { target.uuid }
    /// Whether the view is attached to a video.
    public var isAssignedStream: Bool { target.isAttached }

    /// Called with every frame, on a serial queue of the view. A slow function blocks nothing else: at most 8 frames
    /// wait, then the oldest is dropped and counted.
    public var onFrame: (@Sendable (VideoFrame) -> Void)? {
        get { target.onFrame }
        set { target.onFrame = newValue }
    }

    /// Called once, on the same queue, if the image file cannot be written. There is no retry.
    public var onError: (@Sendable (ConnectLiveError) -> Void)? {
        get { target.onError }
        set { target.onError = newValue }
    }

    /// Frames dropped because `onFrame` was too slow.
    public var droppedFrames: Int { target.droppedFrames }
    /// The newest frame.
    public var latestFrame: VideoFrame? { target.latestFrame }

    /// Sets how frames fill a window or a terminal: see `UIRenderView.videoContentMode`.
    public func setVideoContentMode(_ mode: UIView.ContentMode) { target.setFit(mode) }
}

/// A video of this SDK. Videos of applications, such as doubles in tests, have no outlet.
protocol ShownVideo {
    var outlet: VideoOutlet { get }
}

extension LocalVideo {
    /// Like `attach(_:)` for a `UIRenderView`. Does nothing with a video of the application's own type. (Linux)
    public func attach(_ view: FrameView) { (self as? any ShownVideo)?.outlet.attach(view.target) }

    /// Detaches one view. (Linux)
    public func detach(_ view: FrameView) { (self as? any ShownVideo)?.outlet.detach(view.target) }
}

extension RemoteVideo {
    /// Like `attach(_:)` for a `UIRenderView`. Does nothing with a video of the application's own type. (Linux)
    public func attach(_ view: FrameView) { (self as? any ShownVideo)?.outlet.attach(view.target) }

    /// Detaches one view. (Linux)
    public func detach(_ view: FrameView) { (self as? any ShownVideo)?.outlet.detach(view.target) }
}

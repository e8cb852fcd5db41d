internal import Foundation
public import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import RoomProtocol

/// A destination for a video's frames: the program, a window, an image file, or none.
///
/// Attach it to a `LocalVideo` or a `RemoteVideo`, which retains the destination until it is detached. It shows one
/// video at a time.
open class UIRenderView {
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

    let target: RenderTarget

    /// A view without a display, for `onFrame` and `latestFrame`.
    public init() {
        target = RenderTarget(window: nil, imagePath: nil)
    }

    /// A window on the desktop. Throws `window.unavailable` without a display.
    public init(windowTitle title: String, width: Int = 960, height: Int = 540) throws {
        do throws(MediaError) {
            let window = try TiledWindow(title: title, width: width, height: height)
            target = RenderTarget(window: window, imagePath: nil)
        } catch {
            throw ConnectLiveError(RoomError(error))
        }
    }

    /// Writes the first frame to a PNG file. Throws `file.unwritable` if the path cannot be written; `onError` reports
    /// later failures.
    public init(imagePath: String) throws {
        try Self.requireFolder(of: imagePath)
        target = RenderTarget(window: nil, imagePath: imagePath)
    }

    private static func requireFolder(of path: String) throws {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue,
            FileManager.default.isWritableFile(atPath: folder)
        else {
            let error = MediaError(
                code: MediaError.Code.fileUnwritable,
                message: "The image \(path) cannot be written: \(folder) is not a writable folder. Choose another path."
            )
            throw ConnectLiveError(RoomError(error))
        }
    }
}

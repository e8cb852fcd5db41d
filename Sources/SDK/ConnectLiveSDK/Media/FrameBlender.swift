internal import GStreamerKit
internal import MediaNodes
internal import Synchronization

/// Changes the frames of local media before anybody sees them, such as to add a logo or to blur the background:
/// `LocalMedia.frameBlender`. Called on a thread of the media.
public protocol FrameBlender: AnyObject {
    /// Returns the frame to show instead, of the same format and size: another one, or this one with something drawn into it.
    /// Nil leaves it unchanged, and so does a frame of another format or size.
    ///
    /// Called for each frame, upright, one call after the other, on a thread of the media: not on the main actor. While it is
    /// busy, two frames wait, and the oldest of more is dropped. Drawing into the frame copies it first.
    ///
    /// - Parameter frame: I420
    func blend(frame: PixelBuffer) -> PixelBuffer?
}

/// A blender of the application that is called on threads of the media.
// @unchecked: its calls do not overlap, and the protocol states their thread.
final class CalledBlender: @unchecked Sendable {
    let blender: any FrameBlender
    /// While a change of the graph is prepared, its blending node runs beside the former one.
    private let turn = Mutex(())

    init(_ blender: any FrameBlender) { self.blender = blender }

    func callAsFunction(_ picture: Picture) -> Picture? {
        PixelBuffer(picture).flatMap { frame in turn.withLock { _ in blender.blend(frame: frame) } }?.picture
    }
}

internal import GStreamerKit
internal import MediaNodes

/// Changes the frames of local media before anybody sees them, such as to add a logo or to blur the background:
/// `LocalMedia.frameBlender`.
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

/// A blender of the application that is called on a thread of the media.
// @unchecked: its calls do not overlap, and the protocol states their thread.
struct CalledBlender: @unchecked Sendable {
    let blender: any FrameBlender

    func callAsFunction(_ picture: Picture) -> Picture? {
        PixelBuffer(picture).flatMap { blender.blend(frame: $0) }?.picture
    }
}

internal import GStreamerKit
public import MediaGraph
internal import MediaNodes

/// Takes the frames of media with the source `bypass`: `LocalMedia.videoSource`. Callable on any thread, such as that of a
/// capturer, one call after the other.
///
/// Other participants see the frames in the shape that they have when they are upright, scaled down if they are larger than
/// `videoWidth` and `videoHeight`, of which the longer one limits the longer side. Frames above `videoFPS` are dropped. Pass
/// one at least every 5 s: without any, the last one stays, and the others see that the video waits. While the media does not run, frames
/// are dropped.
public protocol VideoCapturerSource: AnyObject, Sendable {
    /// Passes a frame. Copies a frame that is not upright, and no other one.
    ///
    /// - Parameters:
    ///   - time: when the frame was captured: `MediaTime.now`, or a time of the application's own clock. With an invalid time,
    ///     it is captured now.
    ///   - orientation: that of the interface, which shows how to turn the frame: see `InterfaceOrientation`.
    func didCapturePixelBuffer(_ pixelBuffer: PixelBuffer, time: MediaTime, orientation: InterfaceOrientation)
    /// Passes a frame with its time.
    func didCaptureSampleBuffer(_ sampleBuffer: SampleBuffer, orientation: InterfaceOrientation)
}

final class LocalFrameSource: VideoCapturerSource {
    private let entrance: FrameEntrance

    init(_ entrance: FrameEntrance) { self.entrance = entrance }

    func didCapturePixelBuffer(_ pixelBuffer: PixelBuffer, time: MediaTime, orientation: InterfaceOrientation) {
        entrance.push(pixelBuffer.picture, turning: orientation.turn, at: time.isValid ? time : nil)
    }

    func didCaptureSampleBuffer(_ sampleBuffer: SampleBuffer, orientation: InterfaceOrientation) {
        guard let frame = sampleBuffer.imageBuffer else { return }
        didCapturePixelBuffer(frame, time: sampleBuffer.presentationTimeStamp, orientation: orientation)
    }
}

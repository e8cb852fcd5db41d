package import MediaGraph

/// What a participant publishes: where pictures and sound come from and how they are encoded.
package struct CaptureOptions: Sendable {
    package enum Source: Sendable, Equatable {
        /// A path such as `/dev/video0`, or nil for the first camera.
        case camera(device: String?)
        /// Pictures and sound of a file, at its own size and rate.
        case file(path: String, isLooping: Bool)
        /// Bars with a bar-coded frame number, and a tone; ends after `frames` unless that is 0.
        case testPattern(frames: Int)
    }

    /// Where sound comes from when the source is a camera; a file and the test pattern have their own.
    package enum Microphone: Sendable, Equatable {
        /// The default one, or no sound where there is none.
        case automatic
        case none
        case device(String)
    }

    package var source: Source
    package var microphone = Microphone.automatic
    package var hasVideo = true
    package var hasAudio = true
    /// Of a camera and the test pattern; a file keeps its own.
    package var width = 640
    package var height = 480
    package var framesPerSecond = 20.0
    /// Of a camera.
    package var isMirror = true
    package var codec = VideoCodec.vp8
    /// Nil takes the table's (`VideoBitrate`).
    package var bitrate: Bitrate?

    package init(source: Source) { self.source = source }
}

package import MediaGraph

/// The sources that a participant publishes, and their encoding.
package struct CaptureOptions: Sendable {
    package enum Source: Sendable, Equatable {
        /// A path such as `/dev/video0`, or nil for the first camera.
        case camera(device: String?)
        /// Video and audio of a file, at its own size and frame rate.
        case file(path: String, isLooping: Bool)
        /// Bars with a bar-coded frame number, and a tone. Ends after `frames`; 0 means without end.
        case testPattern(frames: Int)
    }

    /// The audio source for a camera. Files and the test pattern have their own audio.
    package enum Microphone: Sendable, Equatable {
        /// The default microphone, or no audio without one.
        case automatic
        case none
        case device(String)
    }

    package var source: Source
    /// The camera that takes over while the source's camera is away.
    package var failover: String?
    /// Whether capturing starts without the camera and the microphone, and shows them when they are plugged in.
    package var waitsForDevices = false
    package var microphone = Microphone.automatic
    package var hasVideo = true
    package var hasAudio = true
    /// Size for a camera and the test pattern. A file keeps its own.
    package var width = 640
    package var height = 480
    package var framesPerSecond = 20.0
    /// Mirrors the camera's frames.
    package var isMirror = true
    package var codec = VideoCodec.vp8
    /// Nil means the default of `VideoBitrate`.
    package var bitrate: Bitrate?

    package init(source: Source) { self.source = source }
}

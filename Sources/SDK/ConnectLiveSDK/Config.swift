public import MediaGraph
internal import RoomClient
internal import RoomProtocol

/// Settings of local media and of rooms.
public struct Config: Sendable {
    /// The media to publish.
    public var mediaOptions = LocalMediaOptions()
    /// How many videos can be received at first. At most `videoReceiverMaximumCount`.
    public var videoReceiverInitialCount = 9
    /// How many videos can be received. The server allows 20. Further subscriptions fail with 1322.
    public var videoReceiverMaximumCount = 20
    /// How many receivers are added when all are in use.
    public var videoReceiverGrowthRate = 1
    /// Whether to play remote audio on the loudspeaker, if there is one. It is decoded either way. (Linux)
    public var playsRemoteAudio = true

    public init() {}

    var receivers: ReceiverPool {
        let maximum = max(0, videoReceiverMaximumCount)
        return ReceiverPool(
            initial: min(max(0, videoReceiverInitialCount), maximum), maximum: maximum,
            growth: max(1, videoReceiverGrowthRate))
    }
}

/// A video source.
public enum CapturerType: Sendable, Hashable {
    /// A V4L2 camera. The audio comes from a microphone.
    case camera
    /// A media file with its own audio, size and frame rate: `LocalMediaOptions.fileName`.
    case file
    /// Moving bars with a bar-coded frame number, and a synchronous tone. (Linux)
    case testPattern
}

/// The audio source for a camera. (Linux)
public enum MicrophoneType: Sendable, Hashable {
    /// The default microphone. No audio if the machine has none.
    case automatic
    case none
    /// A microphone by its identifier, as listed by `connectlive devices`.
    case device(String)
}

/// The media that a participant publishes. Part of a `Config`.
public struct LocalMediaOptions: Sendable {
    public var source = CapturerType.camera
    /// Whether to publish audio.
    public var hasAudio = true
    /// Whether to publish video.
    public var hasVideo = true
    /// Free text that all participants see beside the video, such as "camera" or "screen".
    public var videoExtraValue = ""
    /// Free text that all participants see beside the audio.
    public var audioExtraValue = ""
    /// Whether to mirror a camera's frames.
    public var isMirror = true
    /// The file to publish: an absolute path, or one relative to the current folder.
    public var fileName = "sample.mov"
    /// Frame size in pixels and frames per second, for a camera and the test pattern. A file keeps its own.
    public var videoWidth = 640
    public var videoHeight = 480
    public var videoFPS = 20

    /// The camera's path, such as `/dev/video0`. Nil means the first camera. (Linux)
    public var cameraDevice: String?
    /// The camera that takes over while `cameraDevice` is away. Nil means none: the last frame stands in for it. (Linux)
    public var failoverCamera: String?
    /// Whether `start` succeeds without the camera and the microphone. The video then shows a slate until the camera is
    /// plugged in, and the audio is silent. (Linux)
    public var waitsForDevices = false
    /// The microphone for a camera. (Linux)
    public var microphone = MicrophoneType.automatic
    /// Whether a file repeats without a gap. (Linux)
    public var isLooping = true
    /// VP8, or H.264 constrained baseline. (Linux)
    public var videoCodec = VideoCodec.vp8
    /// Constant bitrate of the video in bits per second. Nil means the default of `VideoBitrate` for its size and frame
    /// rate. (Linux)
    public var videoBitrate: Int?

    init() {}

    var captureOptions: CaptureOptions {
        var options: CaptureOptions
        switch source {
        case .camera: options = CaptureOptions(source: .camera(device: cameraDevice))
        case .file: options = CaptureOptions(source: .file(path: fileName, isLooping: isLooping))
        case .testPattern: options = CaptureOptions(source: .testPattern(frames: 0))
        }
        options.microphone =
            switch microphone {
            case .automatic: .automatic
            case .none: .none
            case .device(let identifier): .device(identifier)
            }
        options.failover = failoverCamera
        options.hasVideo = hasVideo
        options.hasAudio = hasAudio
        options.width = videoWidth
        options.height = videoHeight
        options.framesPerSecond = Double(videoFPS)
        options.isMirror = isMirror
        options.waitsForDevices = waitsForDevices
        options.codec = videoCodec
        options.bitrate = videoBitrate.map(Bitrate.init(bitsPerSecond:))
        return options
    }
}

extension LocalMediaOptions {
    /// The text beside both streams.
    @available(*, deprecated, message: "Set videoExtraValue and audioExtraValue.")
    public var extraValue: String {
        get { videoExtraValue }
        set {
            videoExtraValue = newValue
            audioExtraValue = newValue
        }
    }
}

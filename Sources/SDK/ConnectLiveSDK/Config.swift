public import MediaGraph
internal import RoomClient
internal import RoomProtocol

/// Settings of local media and of rooms.
public struct Config: Sendable {
    /// What is published.
    public var mediaOptions = LocalMediaOptions()
    /// Videos that can be received at first; `videoReceiverMaximumCount` where that is less.
    public var videoReceiverInitialCount = 9
    /// Videos that can be received at most; the server allows 20. One more is refused with 1322.
    public var videoReceiverMaximumCount = 20
    /// By how many receivers the pool grows when they run out.
    public var videoReceiverGrowthRate = 1
    /// Whether the sound of others goes to the loudspeaker, where there is one. It is decoded either way. (Linux)
    public var playsRemoteAudio = true

    public init() {}

    var receivers: ReceiverPool {
        let maximum = max(0, videoReceiverMaximumCount)
        return ReceiverPool(
            initial: min(max(0, videoReceiverInitialCount), maximum), maximum: maximum,
            growth: max(1, videoReceiverGrowthRate))
    }
}

/// Where pictures come from.
public enum CapturerType: Sendable, Hashable {
    /// A V4L2 camera; the sound is a microphone's.
    case camera
    /// A media file with its own sound, size and rate: `LocalMediaOptions.fileName`.
    case file
    /// Moving bars with a bar-coded frame number, and a tone in step. (Linux)
    case testPattern
}

/// Where sound comes from when the source is a camera. (Linux)
public enum MicrophoneType: Sendable, Hashable {
    /// The default microphone; no sound where the machine has none.
    case automatic
    case none
    /// By its identifier, as `connectlive devices` lists it.
    case device(String)
}

/// What a participant publishes; obtained from a `Config`.
public struct LocalMediaOptions: Sendable {
    public var source = CapturerType.camera
    /// Whether there is sound at all.
    public var hasAudio = true
    /// Whether there are pictures at all.
    public var hasVideo = true
    /// A free text that everyone in the room sees beside the video, such as "camera" or "screen".
    public var videoExtraValue = ""
    /// The same for the sound.
    public var audioExtraValue = ""
    /// Whether left and right of a camera's picture are swapped.
    public var isMirror = true
    /// The file to publish: an absolute path, or one from the current folder.
    public var fileName = "sample.mov"
    /// Size in pixels and frames per second of a camera and the test pattern; a file keeps its own.
    public var videoWidth = 640
    public var videoHeight = 480
    public var videoFPS = 20

    /// The camera as a path such as `/dev/video0`; nil takes the first. (Linux)
    public var cameraDevice: String?
    /// (Linux)
    public var microphone = MicrophoneType.automatic
    /// Whether a file starts again at its end, without a gap. (Linux)
    public var isLooping = true
    /// VP8, or H.264 constrained baseline. (Linux)
    public var videoCodec = VideoCodec.vp8
    /// Constant bitrate of the video in bits per second; nil takes the one that `VideoBitrate` has for its size and
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
        options.hasVideo = hasVideo
        options.hasAudio = hasAudio
        options.width = videoWidth
        options.height = videoHeight
        options.framesPerSecond = Double(videoFPS)
        options.isMirror = isMirror
        options.codec = videoCodec
        options.bitrate = videoBitrate.map(Bitrate.init(bitsPerSecond:))
        return options
    }
}

extension LocalMediaOptions {
    /// The text beside both streams, as it was before there was one for each.
    @available(*, deprecated, message: "Set videoExtraValue and audioExtraValue.")
    public var extraValue: String {
        get { videoExtraValue }
        set {
            videoExtraValue = newValue
            audioExtraValue = newValue
        }
    }
}

internal import Foundation
public import MediaGraph
internal import RoomClient

/// A video source.
public enum CapturerType: Sendable, Hashable {
    /// A V4L2 camera. The audio comes from a microphone.
    case camera
    /// Frames that the application passes to `LocalMedia.videoSource`. The audio comes from a microphone, unless `hasAudio` is false.
    case bypass
    /// A media file with its own audio, size and frame rate: `LocalMediaOptions.fileName`.
    case file
}

/// The audio source for a camera. (Linux)
public enum MicrophoneType: Sendable, Hashable {
    /// The default microphone. If the machine has none, only the video is published.
    case automatic
    /// No microphone: only the video is published.
    case none
    /// A microphone by one of its names: `connectlive devices` lists them.
    case device(String)
}

/// The place of a camera: `front` and `back` are names that the user gives to cameras with `connectlive devices bind`. The raw values are those of `AVCaptureDevice.Position`.
public enum CameraPosition: Int, Sendable, Hashable {
    /// A camera that is named otherwise.
    case unspecified = 0
    /// The camera that the user has bound to the name `back`.
    case back = 1
    /// The camera that the user has bound to the name `front`.
    case front = 2

    /// The name to bind a camera to: `front` or `back`. Empty for `unspecified`. (Linux)
    public var name: String {
        switch self {
        case .unspecified: ""
        case .back: "back"
        case .front: "front"
        }
    }

    /// `unspecified` for the name of another camera.
    init(named name: String?) {
        self =
            switch name {
            case "front": .front
            case "back": .back
            default: .unspecified
            }
    }
}

/// The media that a participant publishes. Part of a `Config`.
public struct LocalMediaOptions: Sendable {
    /// Free text that all participants see beside the video, such as "camera" or "screen".
    public var videoExtraValue = ""
    /// Free text that all participants see beside the audio.
    public var audioExtraValue = ""
    var request: MediaRequest

    init(_ request: MediaRequest? = nil) {
        self.request = request ?? MediaRequest(source: .camera)
        guard request == nil else { return }
        self.request.file = "sample.mov"
        self.request.fileFolders = Self.bundleFolders
        self.request.position = CameraPosition.front.name
    }

    /// The folders of the files that come with the application.
    private static var bundleFolders: [String] {
        [Bundle.main.resourcePath, Bundle.main.executableURL?.deletingLastPathComponent().path].compactMap(\.self)
    }

    /// A camera by default. `.file` for the test pattern, which setting a source ends.
    public var source: CapturerType {
        get {
            switch request.source {
            case .camera: .camera
            case .bypass: .bypass
            case .file, .testPattern, .feed: .file
            }
        }
        set {
            request.source =
                switch newValue {
                case .camera: .camera
                case .bypass: .bypass
                case .file: .file
                }
        }
    }

    /// Whether to publish moving bars with a bar-coded frame number, and a synchronous tone, instead of `source`. Setting it to
    /// false chooses the camera. False by default. (Linux)
    public var usesTestPattern: Bool {
        get { request.source == .testPattern }
        set {
            if newValue {
                request.source = .testPattern
            } else if request.source == .testPattern {
                request.source = .camera
            }
        }
    }

    /// Whether to publish audio. True by default.
    public var hasAudio: Bool {
        get { request.hasAudio }
        set { request.hasAudio = newValue }
    }

    /// Whether to publish video. True by default.
    public var hasVideo: Bool {
        get { request.hasVideo }
        set { request.hasVideo = newValue }
    }

    /// Whether the video is active when the media is created: see `LocalVideo.active`. True by default.
    public var video: Bool {
        get { request.isVideoActive }
        set { request.isVideoActive = newValue }
    }

    /// Whether the audio is active when the media is created: see `LocalAudio.active`. True by default.
    public var audio: Bool {
        get { request.isAudioActive }
        set { request.isAudioActive = newValue }
    }

    /// The place of the camera. The user binds a camera to the name `front` or `back` with `connectlive devices bind`. Without
    /// that, `.front` is the first camera and `.back` the second one, or the only one. `.unspecified` means the first camera.
    /// `.front` by default. A `cameraDevice` with another name, and the environment variable CONNECTLIVE_CAMERA, count more.
    public var position: CameraPosition {
        get { CameraPosition(named: request.camera ?? request.position) }
        set {
            request.position = newValue == .unspecified ? nil : newValue.name
            if CameraPosition(named: request.camera) != .unspecified { request.camera = nil }
        }
    }

    /// Whether to mirror a camera's frames, for everybody. True by default. Mirrored frames are decoded and encoded: set it
    /// to false, so that H.264 of the camera can pass through.
    public var isMirror: Bool {
        get { request.isMirrored }
        set { request.isMirrored = newValue }
    }

    /// The direction that decides how the camera's frames are turned upright. `.notAvailable` by default: they are not. While they are turned,
    /// H.264 of the camera is decoded and encoded again.
    public var rotationType: CameraRotationType {
        get { CameraRotationType(request.rotationType) }
        set { request.rotationType = newValue.requested }
    }

    /// The file to publish: an absolute path, or a name to look for in the current folder, then in the resources of the
    /// application (`Bundle.main`), then in the folder of the program. `sample.mov` by default.
    public var fileName: String {
        get { request.file }
        set { request.file = newValue }
    }

    /// Frame width in pixels, for a camera and the test pattern. 640 by default. A file keeps its own. Frames of `bypass` keep
    /// theirs too; here, the larger one of width and height limits their longer side, and the smaller one the other.
    public var videoWidth: Int {
        get { request.width }
        set { request.width = newValue }
    }

    /// Frame height in pixels. 480 by default.
    public var videoHeight: Int {
        get { request.height }
        set { request.height = newValue }
    }

    /// Frames per second. 20 by default. More than 30 is taken if the camera has it. A rate that is set is also the highest one; H.264 of a camera with a higher rate then
    /// does not pass through.
    public var videoFPS: Int {
        get { Int(request.framesPerSecond ?? 20) }
        set { request.framesPerSecond = Double(newValue) }
    }

    /// The camera: a name of `connectlive devices`, such as `serial:7C3F` or `front`, or a path such as `/dev/video0`. Nil
    /// means that of `position`. (Linux)
    public var cameraDevice: String? {
        get { request.camera }
        set { request.camera = newValue }
    }

    /// The camera that takes over while `cameraDevice` is away. Nil means none: the last frame stands in for it. (Linux)
    public var failoverCamera: String? {
        get { request.failover }
        set { request.failover = newValue }
    }

    /// Controls of the camera by their V4L2 names, set in this order whenever it opens, such as
    /// `brightness=90,auto_exposure=1,exposure_time_absolute=157`. `connectlive devices` lists them with their limits. They
    /// replace those that `connectlive devices bind` gave to the camera's name.
    ///
    /// `update` changes them while the camera is open: it neither opens the camera again nor interrupts the video. A control
    /// that the new text leaves out keeps its value; nil, the default, gives all of them the values of before. `update` and
    /// `start` throw `camera.control` for a control that the camera lacks, and for a value outside its limits. Not for
    /// cameras of libcamera. (Linux)
    public var cameraControls: String? {
        get { request.cameraControls }
        set { request.cameraControls = newValue }
    }

    /// Whether `start` succeeds without the camera and a named microphone, and `switchCamera` without the camera. The video
    /// then shows a slate until the camera is plugged in, and the audio is silent. Audio alone also waits for an automatic
    /// microphone. False by default: `start` fails without the
    /// microphone, and without the camera if there is no audio. (Linux)
    public var waitsForDevices: Bool {
        get { request.waitsForDevices }
        set { request.waitsForDevices = newValue }
    }

    /// Whether `start` fails without the camera, also if there is audio.
    package var needsCamera: Bool {
        get { request.needsCamera }
        set { request.needsCamera = newValue }
    }

    /// The microphone for a camera. (Linux)
    public var microphone: MicrophoneType {
        get {
            switch request.microphone {
            case .automatic: .automatic
            case .none: .none
            case .device(let identifier): .device(identifier)
            }
        }
        set {
            request.microphone =
                switch newValue {
                case .automatic: .automatic
                case .none: .none
                case .device(let identifier): .device(identifier)
                }
        }
    }

    /// Whether a file repeats without a gap. True by default. (Linux)
    public var isLooping: Bool {
        get { request.isLooping }
        set { request.isLooping = newValue }
    }

    /// VP8, VP9, or H.264 constrained baseline. Nil, the default, means the one that costs least: H.264 that the camera delivers
    /// passes through, everything else becomes H.264 if hardware encodes it, or else VP8. It does not pass with `isMirror`,
    /// `failoverCamera` or `videoBitrate`, nor in another size than `videoWidth` and `videoHeight`. While a room has the video,
    /// it keeps its codec, and a request for another one throws. (Linux)
    public var videoCodec: VideoCodec? {
        get { request.codec }
        set { request.codec = newValue }
    }

    /// Constant bitrate of the video in bits per second. Nil means the default of `VideoBitrate` for its size and frame
    /// rate, or the rate of H.264 that passes through. (Linux)
    public var videoBitrate: Int? {
        get { request.bitrate?.bitsPerSecond }
        set { request.bitrate = newValue.map(Bitrate.init(bitsPerSecond:)) }
    }

    /// The sizes in which the video is encoded and sent, 1 to 3: 2 adds half of width and height, 3 also a quarter (simulcast). A
    /// viewer gets the largest one that its network carries, and those that nobody watches are not encoded. 1 by default: three
    /// cost half to two thirds more processor time. Frames of fewer pixels than 960x540 get at most two sizes, and those of fewer than
    /// 480x270 one. A change while a room has the video takes effect when it is published again; fewer sizes do at once. (Linux)
    public var videoLayers: Int {
        get { request.layers }
        set { request.layers = min(max(1, newValue), VideoLayer.allCases.count) }
    }

    /// The property that video keeps, if it is encoded here, when the network carries less or the machine is too slow: its frame rate
    /// (`motion`), its size (`detail`), or neither alone. Nil, the default, means `motion`. (Linux)
    public var videoDegradation: Degradation? {
        get { request.degradation }
        set { request.degradation = newValue }
    }
}

extension LocalMediaOptions {
    /// The options that `develop` sets.
    public enum DevelopOption: String, Sendable, Hashable, CaseIterable {
        /// An `Int`, for `videoFPS`.
        case fps
        /// A `StreamSubType`, or its raw value: `.multiple` sets `videoLayers` to 3, the others to 1.
        case videoStreamSubType
        /// A `Bool`: true publishes the video as a screen, with its detail and the bits of high definition.
        case screenCast
    }

    /// Sets an option by its name. A value of another type makes `LocalMedia.start` and publishing fail with 2021.
    public mutating func develop(option: DevelopOption, value: Any) {
        request.unusable[option.rawValue] = nil
        switch (option, value) {
        case (.fps, let rate as Int) where rate > 0: videoFPS = rate
        case (.videoStreamSubType, let type as StreamSubType): videoLayers = type == .multiple ? 3 : 1
        case (.videoStreamSubType, let name as String) where StreamSubType(rawValue: name) != nil:
            videoLayers = name == StreamSubType.multiple.rawValue ? 3 : 1
        case (.screenCast, let isScreen as Bool):
            request.degradation = isScreen ? .detail : nil
            request.isHighDefinition = isScreen ? true : nil
        default:
            let expected =
                switch option {
                case .fps: "an Int above 0"
                case .videoStreamSubType: "a StreamSubType"
                case .screenCast: "a Bool"
                }
            request.unusable[option.rawValue] =
                "The option \(option.rawValue) has the value \(value) of type \(type(of: value)). Give it \(expected)."
        }
    }

    /// The text beside both streams.
    @available(*, deprecated, message: "Set videoExtraValue and audioExtraValue.")
    public var extraValue: String {
        get { videoExtraValue }
        set {
            videoExtraValue = newValue
            audioExtraValue = newValue
        }
    }

    /// The former name of `videoWidth`, with the misprint of version 2.0. In pixels.
    @available(*, deprecated, renamed: "videoWidth")
    public var cameraCapturewWidth: Int {
        get { videoWidth }
        set { videoWidth = newValue }
    }

    /// The former name of `videoHeight`. In pixels.
    @available(*, deprecated, renamed: "videoHeight")
    public var cameraCaptureHeight: Int {
        get { videoHeight }
        set { videoHeight = newValue }
    }
}

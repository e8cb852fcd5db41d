/// The local video and audio. It can be published in any number of rooms, at the same time or one after another. Releasing it
/// stops it.
///
/// Changes apply while it runs, and its streams go on: the other participants see no new video. Several changes at a time
/// become one. A change that fails throws the reason, and the media continues as before. Callable on any thread.
public protocol LocalMedia: AnyObject, Sendable {
    /// The video. It exists also if the options have none, and is never published then.
    var video: any LocalVideo { get }
    /// The audio. It exists also if the options have none, and is never published then.
    var audio: any LocalAudio { get }
    /// The camera's place: that of `LocalMediaOptions.position` or of the last switch. `.unspecified` if the camera was chosen
    /// by another name. Setting it switches to the camera of that place without waiting. A failure is an `onError` of the rooms that
    /// have the media: 1201 also for media with another source than a camera, which does not change.
    var position: CameraPosition { get set }
    /// Whether the camera's frames are mirrored.
    var isMirror: Bool { get }
    /// Takes the application's frames if the source is `bypass`. Nil for other sources.
    var videoSource: (any VideoCapturerSource)? { get }
    /// Changes the frames before anybody sees them, also in the attached views. May be set and removed while the media runs: its streams
    /// go on. H.264 of the camera is decoded and encoded for it. Retained. Nil by default.
    var frameBlender: (any FrameBlender)? { get set }
    /// How loud the captured audio is, after processing: 0 for silence, 50 to 70 for comfortable speech, 100 at most. 0 while none is
    /// captured. Ask a few times a second.
    var audioLevel: Int { get }
    /// Starts capturing, and returns after the first frame. Publishing starts it too, and it starts again after a stop. Throws
    /// a `ConnectLiveError` if the file is missing, or the camera of video without audio. With audio, a camera that is missing
    /// costs the video alone: a slate stands in for it until it is plugged in. Later, a camera or microphone may be lost and
    /// return. `onLocalVideoChanged` and `onLocalAudioChanged` report all of that.
    func start() async throws
    /// Starts capturing, and returns at once. The completion is called on the callback queue.
    ///
    /// - Parameter completion: receives nil on success
    func start(completion: @escaping ((any Error)?) -> Void)
    /// Stops capturing. When it returns, the devices are free. The streams stay published, without frames, until the media
    /// starts again or is unpublished.
    func stop() async
    /// Stops capturing, and returns at once. The completion is called on the callback queue when the devices are free.
    func stop(completion: @escaping () -> Void)
    /// Switches to the camera of a place, as `LocalMediaOptions.position` finds it. Throws a `ConnectLiveError` with 1201 if it is
    /// missing or cannot be opened, and the former camera then continues. The same for media with another source than a camera.
    /// Before `start`, it chooses the camera to start with.
    func switchCamera(position: CameraPosition, isMirror: Bool) async throws
    /// Switches to another camera, and returns at once. The completion is called on the callback queue.
    ///
    /// - Parameter completion: receives nil on success
    func switchCamera(position: CameraPosition, isMirror: Bool, completion: @escaping ((any Error)?) -> Void)
    /// Changes the options: the camera or another source and the camera's controls, size, rate, mirroring, bitrate, microphone,
    /// and the codec unless a room has the video. The extra values stay. Throws the reason if that is not possible, and changes nothing. Video or audio that the media did not have before is part of
    /// later publications only. (Linux)
    ///
    /// - Parameter change: may be called several times, on any thread.
    func update(_ change: @escaping @Sendable (inout LocalMediaOptions) -> Void) async throws
}

extension LocalMedia {
    /// Nil, for types of applications, such as doubles in tests.
    public var videoSource: (any VideoCapturerSource)? { nil }

    /// Changes nothing, for types of applications.
    ///
    /// - Throws: nothing. A type of an application that has an `update` of its own throws its errors.
    public func update(_ change: @escaping @Sendable (inout LocalMediaOptions) -> Void) async throws {}

    /// Nil, for types of applications, which ignore another value.
    public var frameBlender: (any FrameBlender)? {
        get { nil }
        set { _ = newValue }
    }

    /// Stops capturing, and returns before the devices are free.
    @available(*, deprecated, message: "Use await stop(), or stop(completion:).")
    public func stop() { stop {} }

    /// Shows the frames in the view, like `video.attach(view)`.
    public func attach(_ view: UIRenderView) { video.attach(view) }

    /// Shows the frames in the view. (Linux)
    public func attach(_ view: FrameView) { video.attach(view) }

    /// Detaches all views, like `video.detach()`.
    public func detach() { video.detach() }
}

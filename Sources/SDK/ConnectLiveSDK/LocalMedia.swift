internal import Foundation
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// The local video and audio. It can be published in any number of rooms, at the same time or one after another. Releasing it
/// stops it.
///
/// Changes apply while it runs, and its streams go on: the other participants see no new video. Several changes at a time
/// become one. A change that fails throws the reason, and the media continues as before.
public protocol LocalMedia: AnyObject, Sendable {
    var video: LocalVideo { get }
    var audio: LocalAudio { get }
    /// The camera's place: `.front` or `.back` if the camera was chosen by that name.
    var position: CameraPosition { get }
    /// Whether the camera's frames are mirrored.
    var isMirror: Bool { get }
    /// Starts capturing, and returns after the first frame. Publishing starts it too, and it starts again after a stop. Throws
    /// a `ConnectLiveError` if the file is missing, or the camera of video without audio. With audio, a camera that is missing
    /// costs the video alone: a slate stands in for it until it is plugged in. Later, a camera or microphone may be lost and
    /// return. `onLocalVideoChanged` and `onLocalAudioChanged` report all of that.
    func start() async throws
    /// - Parameter completion: receives nil on success
    func start(completion: @escaping ((any Error)?) -> Void)
    /// Stops capturing. When it returns, the devices are free. The streams stay published, without frames, until the media
    /// starts again or is unpublished.
    func stop() async
    func stop(completion: @escaping () -> Void)
    /// Switches to the camera that the user has bound to the name `front` or `back` with `connectlive devices bind`. Throws a
    /// `ConnectLiveError` if it is missing or cannot be opened; the former camera then continues. Before `start`, it chooses
    /// the camera to start with. `.unspecified` means the first camera.
    func switchCamera(position: CameraPosition, isMirror: Bool) async throws
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
    /// Shows the frames in the view, like `video.attach(view)`.
    public func attach(_ view: UIRenderView) { video.attach(view) }

    public func detach() { video.detach() }
}

/// The ids of a stream, in the rooms in which it is published.
private final class Identities: Sendable {
    private let known = Mutex<[(id: Int, owner: String)]>([])

    /// Those of the room in which it was published last.
    var newest: (id: Int, owner: String) { known.withLock { $0.last } ?? (0, "") }

    func add(_ id: Int, _ owner: String) { known.withLock { $0.append((id, owner)) } }

    func remove(_ owner: String) { known.withLock { $0.removeAll { $0.owner == owner } } }
}

/// The local video.
public final class LocalVideo: Sendable {
    private let identities = Identities()
    private let outlet: VideoOutlet
    private let capture: LocalCapture
    /// Free text that all participants see.
    public let extraValue: String

    init(extraValue: String, capture: LocalCapture) {
        self.extraValue = extraValue
        self.capture = capture
        outlet = VideoOutlet(fanout: capture.preview)
    }

    /// Whether the video shows its camera. The other participants see the same.
    public var state: StreamState { StreamState(capture.streamState(of: .video)) }

    /// Whether the video is captured. False frees the camera, and the other participants see that the video waits. A failure
    /// to open the camera again is an `onError`.
    public var active: Bool {
        get { capture.requested.isVideoActive }
        set { capture.changeLater { $0.isVideoActive = newValue } }
    }

    public func setEnabled(_ isEnabled: Bool) { active = isEnabled }

    public func getEnabled() -> Bool { active }

    /// The server's id in the room in which it was published last. 0 before it is published.
    public var id: Int { identities.newest.id }
    /// The local participant's id in that room. Empty before it is published.
    public var owner: String { identities.newest.owner }
    /// The id of the first attached view. Empty without one.
    public var viewId: String { outlet.viewIDs.first ?? "" }

    /// Shows the captured frames in the view, before they are encoded. H.264 that passes through is decoded for it. The
    /// other participants notice nothing.
    public func attach(_ view: UIRenderView) { outlet.attach(view) }

    /// Detaches all views.
    public func detach() { outlet.detachAll() }

    public func getExtraValue() -> String { extraValue }

    func published(id: Int, owner: String) { identities.add(id, owner) }

    func unpublished(owner: String) { identities.remove(owner) }
}

/// The local audio.
public final class LocalAudio: Sendable {
    private let identities = Identities()
    private let capture: LocalCapture
    /// Free text that all participants see.
    public let extraValue: String

    init(extraValue: String, capture: LocalCapture) {
        self.extraValue = extraValue
        self.capture = capture
    }

    /// Whether the audio is that of its microphone. The other participants see the same.
    public var state: StreamState { StreamState(capture.streamState(of: .audio)) }

    /// Whether the audio is captured. False frees the microphone, and the other participants see that the audio waits.
    public var active: Bool {
        get { capture.requested.isAudioActive }
        set { capture.changeLater { $0.isAudioActive = newValue } }
    }

    public func setEnabled(_ isEnabled: Bool) { active = isEnabled }

    public func getEnabled() -> Bool { active }

    /// The server's id in the room in which it was published last. 0 before it is published.
    public var id: Int { identities.newest.id }
    /// The local participant's id in that room. Empty before it is published.
    public var owner: String { identities.newest.owner }

    public func getExtraValue() -> String { extraValue }

    func published(id: Int, owner: String) { identities.add(id, owner) }

    func unpublished(owner: String) { identities.remove(owner) }
}

final class LocalMediaSession: LocalMedia {
    let capture: LocalCapture
    let localVideo: LocalVideo
    let localAudio: LocalAudio

    var video: LocalVideo { localVideo }
    var audio: LocalAudio { localAudio }
    var isMirror: Bool { capture.requested.isMirrored }
    var position: CameraPosition { capture.requested.camera.flatMap(CameraPosition.init) ?? .unspecified }

    init(_ options: LocalMediaOptions) {
        capture = LocalCapture(options.request)
        localVideo = LocalVideo(extraValue: options.videoExtraValue, capture: capture)
        localAudio = LocalAudio(extraValue: options.audioExtraValue, capture: capture)
    }

    deinit {
        let capture = capture
        Task.detached { await capture.stop() }
    }

    func start() async throws { try await Self.told { () throws(RoomError) in try await self.capture.start() } }

    func start(completion: @escaping ((any Error)?) -> Void) { Self.run(completion) { try await self.start() } }

    func stop() async { await capture.stop() }

    func stop(completion: @escaping () -> Void) {
        let callback = Callback(completion)
        Task.detached {
            await self.stop()
            callback()
        }
    }

    func switchCamera(position: CameraPosition, isMirror: Bool) async throws {
        try await update { options in
            options.source = .camera
            options.cameraDevice = position == .unspecified ? nil : position.rawValue
            options.isMirror = isMirror
        }
    }

    func switchCamera(position: CameraPosition, isMirror: Bool, completion: @escaping ((any Error)?) -> Void) {
        Self.run(completion) { try await self.switchCamera(position: position, isMirror: isMirror) }
    }

    func update(_ change: @escaping @Sendable (inout LocalMediaOptions) -> Void) async throws {
        try await Self.told { () throws(RoomError) in
            try await self.capture.change { request in
                var options = LocalMediaOptions(request)
                change(&options)
                request = options.request
            }
        }
    }

    /// The participant publishes it no longer.
    func forget(_ owner: String) {
        localVideo.unpublished(owner: owner)
        localAudio.unpublished(owner: owner)
    }

    private static func told(_ body: () async throws(RoomError) -> Void) async throws {
        do throws(RoomError) {
            try await body()
        } catch {
            throw ConnectLiveError(error)
        }
    }

    private static func run(
        _ completion: @escaping ((any Error)?) -> Void, _ body: @escaping @Sendable () async throws -> Void
    ) {
        let callback = Callback(completion)
        Task.detached {
            do {
                try await body()
                callback(nil)
            } catch {
                callback(error)
            }
        }
    }
}

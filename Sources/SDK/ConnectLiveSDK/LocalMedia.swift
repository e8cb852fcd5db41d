internal import Foundation
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// The local video and audio. It can be published in one room after another until it stops. Releasing it stops it.
public protocol LocalMedia: AnyObject, Sendable {
    var video: LocalVideo { get }
    var audio: LocalAudio { get }
    /// Whether the camera's frames are mirrored.
    var isMirror: Bool { get }
    /// Starts capturing, and returns after the first frame. Publishing starts it too. Throws a `ConnectLiveError` if
    /// the file or camera is missing. Later, a camera or microphone may be lost and return: a stand-in takes its place,
    /// and `onLocalVideoChanged` or `onLocalAudioChanged` reports it.
    func start() async throws
    /// - Parameter completion: receives nil on success
    func start(completion: @escaping ((any Error)?) -> Void)
    /// Stops capturing. When it returns, the devices are free. It cannot start again.
    func stop() async
    func stop(completion: @escaping () -> Void)
}

extension LocalMedia {
    /// Shows the frames in the view, like `video.attach(view)`.
    public func attach(_ view: UIRenderView) { video.attach(view) }

    public func detach() { video.detach() }
}

/// The local video.
public final class LocalVideo: Sendable {
    private struct Identity {
        var id = 0
        var owner = ""
    }

    private let identity = Mutex(Identity())
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

    /// The server's id. 0 before it is published.
    public var id: Int { identity.withLock { $0.id } }
    /// The local participant's id. Empty before it is published.
    public var owner: String { identity.withLock { $0.owner } }
    /// The id of the first attached view. Empty without one.
    public var viewId: String { outlet.viewIDs.first ?? "" }

    /// Shows the captured frames in the view, before they are encoded.
    public func attach(_ view: UIRenderView) { outlet.attach(view) }

    /// Detaches all views.
    public func detach() { outlet.detachAll() }

    public func getExtraValue() -> String { extraValue }

    func published(id: Int, owner: String) { identity.withLock { $0 = Identity(id: id, owner: owner) } }
}

/// The local audio.
public final class LocalAudio: Sendable {
    private struct Identity {
        var id = 0
        var owner = ""
    }

    private let identity = Mutex(Identity())
    private let capture: LocalCapture
    /// Free text that all participants see.
    public let extraValue: String

    init(extraValue: String, capture: LocalCapture) {
        self.extraValue = extraValue
        self.capture = capture
    }

    /// Whether the audio is that of its microphone. The other participants see the same.
    public var state: StreamState { StreamState(capture.streamState(of: .audio)) }

    /// The server's id. 0 before it is published.
    public var id: Int { identity.withLock { $0.id } }
    /// The local participant's id. Empty before it is published.
    public var owner: String { identity.withLock { $0.owner } }

    public func getExtraValue() -> String { extraValue }

    func published(id: Int, owner: String) { identity.withLock { $0 = Identity(id: id, owner: owner) } }
}

final class LocalMediaSession: LocalMedia {
    let capture: LocalCapture
    let localVideo: LocalVideo
    let localAudio: LocalAudio
    let isMirror: Bool
    private let isPublished = Mutex(false)

    var video: LocalVideo { localVideo }
    var audio: LocalAudio { localAudio }

    init(_ options: LocalMediaOptions, capture: LocalCapture? = nil) {
        let capture = capture ?? LocalCapture(options.captureOptions)
        self.capture = capture
        isMirror = options.isMirror
        localVideo = LocalVideo(extraValue: options.videoExtraValue, capture: capture)
        localAudio = LocalAudio(extraValue: options.audioExtraValue, capture: capture)
    }

    deinit {
        let capture = capture
        Task.detached { await capture.stop() }
    }

    func start() async throws {
        do throws(RoomError) {
            try await capture.start()
        } catch {
            throw ConnectLiveError(error)
        }
    }

    func start(completion: @escaping ((any Error)?) -> Void) {
        let callback = Callback(completion)
        Task.detached {
            do {
                try await self.start()
                callback(nil)
            } catch {
                callback(error)
            }
        }
    }

    func stop() async { await capture.stop() }

    func stop(completion: @escaping () -> Void) {
        let callback = Callback(completion)
        Task.detached {
            await self.stop()
            callback()
        }
    }

    /// Claims the media for one room. Returns false if a room has it.
    func takeForPublishing() -> Bool {
        isPublished.withLock { isPublished in
            defer { isPublished = true }
            return !isPublished
        }
    }

    /// Lets another room publish it.
    func release() { isPublished.withLock { $0 = false } }
}

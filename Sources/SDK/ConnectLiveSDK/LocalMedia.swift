internal import Foundation
internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// One's own pictures and sound. It can be published in one room after another until it is stopped; letting it go stops
/// it too.
public protocol LocalMedia: AnyObject, Sendable {
    var video: LocalVideo { get }
    var audio: LocalAudio { get }
    /// Whether left and right of the camera's picture are swapped.
    var isMirror: Bool { get }
    /// Starts capturing; returns when the first picture is there. Publishing starts it too. A missing file or camera
    /// throws a `ConnectLiveError`.
    func start() async throws
    /// The error is nil when it went well.
    func start(completion: @escaping ((any Error)?) -> Void)
    /// Ends capturing; the devices are free when it returns. It cannot be started again.
    func stop() async
    func stop(completion: @escaping () -> Void)
}

extension LocalMedia {
    /// Shows the pictures in the view, as `video.attach(view)` does.
    public func attach(_ view: UIRenderView) { video.attach(view) }

    public func detach() { video.detach() }
}

/// One's own pictures.
public final class LocalVideo: Sendable {
    private struct State {
        var id = 0
        var owner = ""
    }

    private let state = Mutex(State())
    private let outlet: VideoOutlet
    /// The free text that everyone in the room sees.
    public let extraValue: String

    init(extraValue: String, preview: FrameFanout) {
        self.extraValue = extraValue
        outlet = VideoOutlet(fanout: preview)
    }

    /// Given by the server; 0 before it is published.
    public var id: Int { state.withLock { $0.id } }
    /// One's own participant id; empty before it is published.
    public var owner: String { state.withLock { $0.owner } }
    /// Names the view that shows the pictures, the first where there are several; empty without one.
    public var viewId: String { outlet.viewIDs.first ?? "" }

    /// Shows the captured pictures in the view, before they are encoded.
    public func attach(_ view: UIRenderView) { outlet.attach(view) }

    /// Takes the pictures out of every view.
    public func detach() { outlet.detachAll() }

    public func getExtraValue() -> String { extraValue }

    func published(id: Int, owner: String) { state.withLock { $0 = State(id: id, owner: owner) } }
}

/// One's own sound.
public final class LocalAudio: Sendable {
    private struct State {
        var id = 0
        var owner = ""
    }

    private let state = Mutex(State())
    /// The free text that everyone in the room sees.
    public let extraValue: String

    init(extraValue: String) { self.extraValue = extraValue }

    /// Given by the server; 0 before it is published.
    public var id: Int { state.withLock { $0.id } }
    /// One's own participant id; empty before it is published.
    public var owner: String { state.withLock { $0.owner } }

    public func getExtraValue() -> String { extraValue }

    func published(id: Int, owner: String) { state.withLock { $0 = State(id: id, owner: owner) } }
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
        localVideo = LocalVideo(extraValue: options.videoExtraValue, preview: capture.preview)
        localAudio = LocalAudio(extraValue: options.audioExtraValue)
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

    /// True if no room has it: a local media is published in one room at a time.
    func takeForPublishing() -> Bool {
        isPublished.withLock { isPublished in
            defer { isPublished = true }
            return !isPublished
        }
    }

    /// Another room may publish it.
    func release() { isPublished.withLock { $0 = false } }
}

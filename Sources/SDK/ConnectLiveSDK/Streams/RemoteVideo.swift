internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// A cap of the quality in which a remote video is received, if its publisher sends several layers (simulcast).
public enum VideoProfileType: String, Codable, Sendable {
    /// No cap. The profile of a video with one layer.
    case empty = ""
    /// The lowest layer.
    case low = "l"
    /// The middle layer.
    case mid = "m"
    /// The highest layer that the link carries. The default of a video with several layers.
    case high = "h"
}

/// A video of another participant. Subscribe to it to see it: `Room.subscribe(videoId:)`. Callable on any thread.
public protocol RemoteVideo: AnyObject, Sendable {
    /// The stream id, unique in the room.
    var id: Int { get }
    /// The participant's id.
    var owner: String { get }
    /// Whether the publisher has the video on. Changes with `onRemoteVideoStateChanged`, as do `extraValue` and `sort`.
    var active: Bool { get }
    /// The publisher's free text.
    var extraValue: String { get }
    /// The wished place of the video in a composed recording, as in `LocalVideo.sort`.
    var sort: String { get }
    /// The id of the first attached view. Empty without one.
    var viewId: String { get }
    /// Whether this room receives the video.
    var isSubscribed: Bool { get }
    /// The cap that `setProfile` sets. `high` by default, and `empty` for a video with one layer.
    var profile: VideoProfileType { get }
    /// Whether no frames of the subscribed video are received. False after each subscription. A failure to set it is an
    /// `onError`.
    var pause: Bool { get set }
    /// How early the link carries a better quality of this video, relative to other videos: 0.01 to 100. 1 after each
    /// subscription. (Linux)
    var priority: Double { get }
    /// Whether the video shows its source. Changes with `onRemoteVideoChanged`. (Linux)
    var state: StreamState { get }
    /// Why the video arrives worse than its publisher could send it. Nil if it does not, before the server has said so, and with
    /// an earlier server. Changes with `onRemoteVideoQualityChanged`. (Linux)
    var limitation: VideoLimitation? { get }

    /// Shows the video in the view from its next frame on. The view is detached from any other video. The video may be
    /// subscribed earlier or later.
    func attach(_ view: UIRenderView)
    /// Detaches one view, which other videos may use then.
    func detach(_ view: UIRenderView)
    /// Detaches all views.
    func detach()
    /// Pauses the subscribed video, which costs no bandwidth then and keeps its receiver, or lets it go on with a keyframe. Throws
    /// a `ConnectLiveError`: 1327 not subscribed, 1354 the room has ended. A failure of the server is an `onError` with 1351.
    func setPaused(_ isPaused: Bool) throws
    /// Likewise. Returns when the server has done it, and throws its failure too.
    func setPausedAsync(_ isPaused: Bool) async throws
    /// Caps the quality in which the subscribed video is received. Throws a `ConnectLiveError`: 1327 not subscribed, 1352 the
    /// video has one layer, 1354 the room has ended. A failure of the server is an `onError` with 1353.
    func setProfile(_ type: VideoProfileType) throws
    /// Likewise. Returns when the server has done it, and throws its failure too.
    func setProfileAsync(_ type: VideoProfileType) async throws
    /// Prefers the subscribed video to others, or others to it, where the link does not carry the best layers of all. A video
    /// with one layer keeps its quality. Throws a `ConnectLiveError`: 1327 not subscribed, 1353 a value that is out of range,
    /// 1354 the room has ended. A failure of the server is an `onError` with 1353. (Linux)
    func setPriority(_ priority: Double) throws
    /// Likewise. Returns when the server has done it, and throws its failure too. (Linux)
    func setPriorityAsync(_ priority: Double) async throws
}

extension RemoteVideo {
    /// Returns `extraValue`.
    public func getExtraValue() -> String { extraValue }

    /// Returns `active`.
    public func isEnabled() -> Bool { active }

    /// Returns `pause`.
    public func isPaused() -> Bool { pause }

    /// The weight and the mode of `sort`. 0 and `crop` if it has another form.
    public func getSort() -> (Int, String) { Sort.parse(sort) }

    /// `.live`, for types of applications, such as doubles in tests.
    public var state: StreamState { .live }

    /// Nil, for types of applications, such as doubles in tests.
    public var limitation: VideoLimitation? { nil }

    /// 1, for types of applications, such as doubles in tests.
    public var priority: Double { 1 }

    /// Does nothing, for types of applications, such as doubles in tests.
    ///
    /// - Throws: nothing here; types of applications may throw errors of their own.
    public func setPriority(_ priority: Double) throws {}

    /// Does nothing, for types of applications, such as doubles in tests.
    ///
    /// - Throws: nothing here; types of applications may throw errors of their own.
    public func setPriorityAsync(_ priority: Double) async throws {}
}

final class RemoteVideoStream: RemoteVideo, ShownVideo {
    let id: Int
    let owner: String
    private let subscribed = Mutex(false)
    private let viewing: ViewSettings
    private let published: Mutex<StreamInfo>
    private let currentLimitation = Mutex<VideoLimitation?>(nil)
    let outlet = VideoOutlet(fanout: FrameFanout())

    /// - Parameter report: called with errors of calls that do not throw
    init(_ info: StreamInfo, owner: String, report: @escaping @Sendable (RoomError) -> Void) {
        id = info.id
        viewing = ViewSettings(of: info, report: report)
        published = Mutex(info)
        self.owner = owner
    }

    var viewId: String { outlet.viewIDs.first ?? "" }
    var active: Bool { published.withLock { $0.attributes.isActive } }
    var extraValue: String { published.withLock { $0.attributes.extraValue } }
    var sort: String { published.withLock { $0.attributes.sort } }
    var state: StreamState { StreamState(published.withLock { $0.state }) }
    var limitation: VideoLimitation? { currentLimitation.withLock { $0 } }
    var isSubscribed: Bool { subscribed.withLock { $0 } }

    func apply(_ change: StreamChange) { published.withLock { $0.apply(change) } }

    func set(_ limitation: VideoLimitation?) { currentLimitation.withLock { $0 = limitation } }

    func setSubscribed(_ value: Bool) {
        subscribed.withLock { $0 = value }
        if !value { set(nil) }
    }

    // MARK: - The view that the server knows

    var profile: VideoProfileType { viewing.profile }

    var pause: Bool {
        get { viewing.isPaused }
        set { viewing.report { try setPaused(newValue) } }
    }

    func setPaused(_ isPaused: Bool) throws { try viewing.setPaused(isPaused) }

    func setPausedAsync(_ isPaused: Bool) async throws {
        try await viewing.run { try viewing.setPaused(isPaused, then: $0) }
    }

    func setProfile(_ type: VideoProfileType) throws { try viewing.setProfile(type) }

    func setProfileAsync(_ type: VideoProfileType) async throws {
        try await viewing.run { try viewing.setProfile(type, then: $0) }
    }

    var priority: Double { viewing.priority }

    func setPriority(_ priority: Double) throws { try viewing.setPriority(priority) }

    func setPriorityAsync(_ priority: Double) async throws {
        try await viewing.run { try viewing.setPriority(priority, then: $0) }
    }

    /// Sets how the server is told another view. See `ViewSettings.begin`.
    func beginView(_ tell: @escaping ViewSettings.Tell) -> Int? { viewing.begin(tell) }

    /// The video is not subscribed any longer. See `ViewSettings.reset`.
    func resetView(_ number: Int? = nil) { viewing.reset(number) }

    /// The video is about to be unsubscribed. See `ViewSettings.end`.
    func endView() -> Int? { viewing.end() }

    /// It is, or goes on. See `ViewSettings.ended`.
    func viewEnded(_ number: Int, goesOn: Bool) { viewing.ended(number, goesOn: goesOn) }

    /// The room has ended.
    func end() {
        setSubscribed(false)
        viewing.roomEnded()
    }

    // MARK: - The application's views

    func attach(_ view: UIRenderView) { outlet.attach(view.target) }

    func detach(_ view: UIRenderView) { outlet.detach(view.target) }

    func detach() { outlet.detachAll() }
}

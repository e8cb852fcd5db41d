internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// A cap of the quality in which a remote video is received, if its publisher sends several layers (simulcast).
public enum VideoProfileType: Sendable {
    /// No cap. The default.
    case empty
    /// The lowest layer.
    case low
    /// The middle layer.
    case mid
    /// The highest layer that the link carries.
    case high
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
    /// The place of the video in a composed recording, as in `LocalVideo.sort`.
    var sort: String { get }
    /// The id of the first attached view. Empty without one.
    var viewId: String { get }
    var isSubscribed: Bool { get }
    /// Whether the video shows its source. Changes with `onRemoteVideoChanged`. (Linux)
    var state: StreamState { get }
    /// Why the video arrives worse than its publisher could send it. Nil if it does not, before the server has said so, and with
    /// an earlier server. Changes with `onRemoteVideoQualityChanged`. (Linux)
    var limitation: VideoLimitation? { get }

    /// Shows the video in the view from its next frame on. The view is detached from any other video. The video may be
    /// subscribed earlier or later.
    func attach(_ view: UIRenderView)
    func detach(_ view: UIRenderView)
    /// Detaches all views.
    func detach()
    /// Caps the quality in which the video is received. Callable before and after the subscription. Does nothing for a
    /// publisher that sends one layer.
    func setProfile(_ type: VideoProfileType)
}

extension RemoteVideo {
    public func getExtraValue() -> String { extraValue }

    public func isEnabled() -> Bool { active }

    /// The weight and the mode of `sort`. 0 and `crop` if it has another form.
    public func getSort() -> (Int, String) { Sort.parse(sort) }

    /// `.live`, for types of applications, such as doubles in tests.
    public var state: StreamState { .live }

    /// Nil, for types of applications, such as doubles in tests.
    public var limitation: VideoLimitation? { nil }
}

final class RemoteVideoStream: RemoteVideo {
    let id: Int
    let owner: String
    private let subscribed = Mutex(false)
    /// The profile, and the way to tell the server another one while the video is subscribed.
    private let profile = Mutex<(type: VideoProfileType, tell: (@Sendable (StreamView) -> Void)?)>((.empty, nil))
    private let published: Mutex<StreamInfo>
    private let currentLimitation = Mutex<VideoLimitation?>(nil)
    let outlet = VideoOutlet(fanout: FrameFanout())

    init(_ info: StreamInfo, owner: String) {
        id = info.id
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

    func setProfile(_ type: VideoProfileType) {
        let tell = profile.withLock { profile in
            profile.type = type
            return profile.tell
        }
        tell?(view)
    }

    var view: StreamView {
        switch profile.withLock({ $0.type }) {
        case .empty: StreamView()
        case .low: StreamView(profile: .low)
        case .mid: StreamView(profile: .mid)
        case .high: StreamView(profile: .high)
        }
    }

    /// Sets how the server is told another view. Nil while the video is not subscribed.
    func onView(_ tell: (@Sendable (StreamView) -> Void)?) { profile.withLock { $0.tell = tell } }

    // MARK: - The application's views

    func attach(_ view: UIRenderView) { outlet.attach(view) }

    func detach(_ view: UIRenderView) { outlet.detach(view.target) }

    func detach() { outlet.detachAll() }
}

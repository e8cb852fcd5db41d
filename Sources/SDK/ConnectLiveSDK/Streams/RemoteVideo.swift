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
    /// The publisher's free text.
    var extraValue: String { get }
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

    /// `.live`, for types of applications, such as doubles in tests.
    public var state: StreamState { .live }

    /// Nil, for types of applications, such as doubles in tests.
    public var limitation: VideoLimitation? { nil }
}

final class RemoteVideoStream: RemoteVideo, ShownVideo {
    let id: Int
    let owner: String
    let extraValue: String
    private let subscribed = Mutex(false)
    /// The profile, and the way to tell the server another one while the video is subscribed.
    private let profile = Mutex<(type: VideoProfileType, tell: (@Sendable (StreamView) -> Void)?)>((.empty, nil))
    private let currentState: Mutex<StreamState>
    private let currentLimitation = Mutex<VideoLimitation?>(nil)
    let outlet = VideoOutlet(fanout: FrameFanout())

    init(_ info: StreamInfo, owner: String) {
        id = info.id
        extraValue = info.extraValue
        currentState = Mutex(StreamState(info.state))
        self.owner = owner
    }

    var viewId: String { outlet.viewIDs.first ?? "" }
    var state: StreamState { currentState.withLock { $0 } }
    var limitation: VideoLimitation? { currentLimitation.withLock { $0 } }
    var isSubscribed: Bool { subscribed.withLock { $0 } }

    func set(_ state: StreamState) { currentState.withLock { $0 = state } }

    func set(_ limitation: VideoLimitation?) { currentLimitation.withLock { $0 = limitation } }

    func setSubscribed(_ value: Bool) {
        subscribed.withLock { $0 = value }
        if !value { set(nil as VideoLimitation?) }
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

    func attach(_ view: UIRenderView) { outlet.attach(view.target) }

    func detach(_ view: UIRenderView) { outlet.detach(view.target) }

    func detach() { outlet.detachAll() }
}

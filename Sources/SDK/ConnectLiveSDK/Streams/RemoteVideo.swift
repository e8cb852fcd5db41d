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

/// A video of another participant. Subscribe to it to see it: `Room.subscribe(videoId:)`.
public final class RemoteVideo: Sendable {
    /// The stream id, unique in the room.
    public let id: Int
    /// The participant's id.
    public let owner: String
    /// The publisher's free text.
    public let extraValue: String
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

    /// Whether the video shows its source. Changes with `onRemoteVideoChanged`.
    public var state: StreamState { currentState.withLock { $0 } }

    func set(_ state: StreamState) { currentState.withLock { $0 = state } }

    /// Why the video arrives worse than its publisher could send it. Nil if it does not, before the server has said so, and with
    /// an earlier server. Changes with `onRemoteVideoQualityChanged`.
    public var limitation: VideoLimitation? { currentLimitation.withLock { $0 } }

    func set(_ limitation: VideoLimitation?) { currentLimitation.withLock { $0 = limitation } }

    public var isSubscribed: Bool {
        get { subscribed.withLock { $0 } }
    }

    func setSubscribed(_ value: Bool) {
        subscribed.withLock { $0 = value }
        if !value { set(nil as VideoLimitation?) }
    }

    /// Caps the quality in which the video is received. Callable before and after the subscription, on any thread. Does nothing
    /// for a publisher that sends one layer.
    public func setProfile(_ type: VideoProfileType) {
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

    /// The id of the first attached view. Empty without one.
    public var viewId: String { outlet.viewIDs.first ?? "" }

    /// Shows the video in the view from its next frame on. The view is detached from any other video. The video may be
    /// subscribed earlier or later.
    public func attach(_ view: UIRenderView) { outlet.attach(view) }

    public func detach(_ view: UIRenderView) { outlet.detach(view.target) }

    /// Detaches all views.
    public func detach() { outlet.detachAll() }

    public func getExtraValue() -> String { extraValue }
}

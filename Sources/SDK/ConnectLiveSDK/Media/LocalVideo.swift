internal import RoomClient
internal import RoomProtocol

/// The video of local media. Callable on any thread.
public protocol LocalVideo: AnyObject, Sendable {
    /// The server's id in the room in which it was published last. 0 before it is published.
    var id: Int { get }
    /// The local participant's id in that room. Empty before it is published.
    var owner: String { get }
    /// Whether the video is captured. False frees the camera, and the other participants see that the video waits. A failure
    /// to open the camera again is an `onError`.
    var active: Bool { get set }
    /// Free text that all participants see.
    var extraValue: String { get }
    /// The id of the first attached view. Empty without one.
    var viewId: String { get }
    /// Whether the video shows its camera. The other participants see the same. (Linux)
    var state: StreamState { get }

    /// Shows the captured frames in the view, before they are encoded. H.264 that passes through is decoded for it. The
    /// other participants notice nothing.
    func attach(_ view: UIRenderView)
    /// Detaches all views.
    func detach()
}

extension LocalVideo {
    public func setEnabled(_ isEnabled: Bool) { active = isEnabled }

    public func getEnabled() -> Bool { active }

    public func getExtraValue() -> String { extraValue }

    /// `.live`, for types of applications, such as doubles in tests.
    public var state: StreamState { .live }
}

final class LocalVideoStream: LocalVideo, ShownVideo {
    private let identities = StreamIdentities()
    let outlet: VideoOutlet
    private let capture: LocalCapture
    let extraValue: String

    init(extraValue: String, capture: LocalCapture) {
        self.extraValue = extraValue
        self.capture = capture
        outlet = VideoOutlet(fanout: capture.preview)
    }

    var id: Int { identities.newest.id }
    var owner: String { identities.newest.owner }
    var viewId: String { outlet.viewIDs.first ?? "" }
    var state: StreamState { StreamState(capture.streamState(of: .video)) }

    var active: Bool {
        get { capture.requested.isVideoActive }
        set { capture.changeLater { $0.isVideoActive = newValue } }
    }

    func attach(_ view: UIRenderView) { outlet.attach(view.target) }

    func detach() { outlet.detachAll() }

    func published(id: Int, owner: String) { identities.add(id, owner) }

    func unpublished(owner: String) { identities.remove(owner) }
}

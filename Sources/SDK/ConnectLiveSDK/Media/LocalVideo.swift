internal import RoomClient
internal import RoomProtocol

/// The local video.
public final class LocalVideo: Sendable {
    private let identities = StreamIdentities()
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

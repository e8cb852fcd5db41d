internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// The video of local media. Callable on any thread.
public protocol LocalVideo: AnyObject, Sendable {
    /// The server's id in the room in which it was published last. 0 before it is published.
    var id: Int { get }
    /// The local participant's id in that room. Empty before it is published.
    var owner: String { get }
    /// Whether the video is captured. False frees the camera, and the other participants see that it is off. A failure
    /// to open the camera again is an `onError`.
    var active: Bool { get set }
    /// Free text of at most 1024 bytes that all participants see. It may change at any time: the others get
    /// `onRemoteVideoStateChanged`. A longer text changes nothing, and an
    /// `onError` of each room that has the media reports it.
    var extraValue: String { get set }
    /// The wished place of the video in a composed recording: a weight from 0 to 9, a space, and `crop`, `fit` or `stretch`. `0 crop` by
    /// default. It may change at any time, like `extraValue`. The server composes no recording: it tells the value to all
    /// participants, and writes it into the report of a recording.
    var sort: String { get set }
    /// Whether the video is published with the bits of high definition. Without a `videoBitrate`, true doubles the usual bitrate of a
    /// video below 1280x720, and video keeps its detail when the network carries less; false halves that of a larger one. H.264 of the
    /// camera does not pass through then. True for 1280x720 and more by default.
    ///
    /// Set it before publishing: while a room has the video, another value counts from the next `publish` after the last room
    /// has ended it.
    var hd: Bool { get set }
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
    /// Sets `active`.
    public func setEnabled(_ isEnabled: Bool) { active = isEnabled }

    /// Returns `active`.
    public func getEnabled() -> Bool { active }

    /// Returns `extraValue`.
    public func getExtraValue() -> String { extraValue }

    /// Sets `extraValue`.
    public func setExtraValue(_ value: String) { extraValue = value }

    /// Sets `sort`. Another weight than 0 to 9, or another mode than `crop`, `fit` and `stretch`, changes nothing, and an
    /// `onError` with 2021 of each room that has the media reports it.
    public func setSort(weight: Int, mode: String) {
        if let stream = self as? LocalVideoStream { return stream.settings.setSort(weight: weight, mode: mode) }
        if Sort.weights.contains(weight), Sort.modes.contains(mode) { sort = "\(weight) \(mode)" }
    }

    /// The weight and the mode of `sort`. 0 and `crop` if it has another form.
    public func getSort() -> (Int, String) { Sort.parse(sort) }

    /// `.live`, for types of applications, such as doubles in tests.
    public var state: StreamState { .live }
}

final class LocalVideoStream: LocalVideo, ShownVideo {
    /// The value of `hd` that counts from the next publication.
    private let nextHD = Mutex<Bool?>(nil)
    private let identities = StreamIdentities()
    let outlet: VideoOutlet
    private let capture: LocalCapture
    let settings: StreamSettings

    init(extraValue: String, capture: LocalCapture) {
        settings = StreamSettings(
            StreamAttributes(extraValue: extraValue, isActive: capture.requested.isVideoActive))
        self.capture = capture
        outlet = VideoOutlet(fanout: capture.preview)
    }

    var id: Int { identities.newest.id }
    var owner: String { identities.newest.owner }
    var viewId: String { outlet.viewIDs.first ?? "" }
    var state: StreamState { StreamState(capture.streamState(of: .video)) }

    var active: Bool {
        get { capture.requested.isVideoActive }
        set {
            capture.changeLater {
                $0.isVideoActive = newValue
            } failed: { [settings, weak capture] in
                if let capture { settings.follow { capture.requested.isVideoActive } }
            }
            requestChanged()
        }
    }

    var hd: Bool {
        get { nextHD.withLock { $0 } ?? capture.isHighDefinition }
        set {
            nextHD.withLock { $0 = newValue }
            if !capture.isVideoPublished { applyHD() }
        }
    }

    /// The video is about to be published.
    func applyHD() {
        guard let value = nextHD.withLock({ next in next.take() }) else { return }
        capture.changeLater { $0.isHighDefinition = value }
    }

    var extraValue: String {
        get { settings.attributes.extraValue }
        set { settings.change(StreamChange(extraValue: newValue)) }
    }

    var sort: String {
        get { settings.attributes.sort }
        set { settings.change(StreamChange(sort: newValue)) }
    }

    func attach(_ view: UIRenderView) { outlet.attach(view.target) }

    func detach() { outlet.detachAll() }

    /// The request of the capture, which has `active`, may have changed.
    func requestChanged() { settings.follow { [capture] in capture.requested.isVideoActive } }

    func published(id: Int, owner: String) { identities.add(id, owner) }

    func unpublished(owner: String) { identities.remove(owner) }
}

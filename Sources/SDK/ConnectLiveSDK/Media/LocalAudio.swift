internal import RoomClient
internal import RoomProtocol

/// The audio of local media. Callable on any thread.
public protocol LocalAudio: AnyObject, Sendable {
    /// The server's id in the room in which it was published last. 0 before it is published.
    var id: Int { get }
    /// The local participant's id in that room. Empty before it is published.
    var owner: String { get }
    /// Whether the audio is captured. False frees the microphone, and the other participants see that it is off. They see the same
    /// of a microphone while the audio session does not record or is interrupted.
    var active: Bool { get set }
    /// Free text of at most 1024 bytes that all participants see. It may change at any time: the others get
    /// `onRemoteAudioStateChanged`. A longer text changes nothing, and an
    /// `onError` of each room that has the media reports it.
    var extraValue: String { get set }
    /// Whether the others hear the audio even if four of them are louder (false). It may change at any time: the others get
    /// `onRemoteAudioStateChanged`. A room has three such audios at most, and one slot for speakers. An `onError` with 1453 reports
    /// that this one came too late: it is heard as any other. The value stays true, because other rooms may have taken it. To ask
    /// again, set false and then true.
    var alwaysOn: Bool { get set }
    /// Whether the audio is that of its microphone. The other participants see the same. (Linux)
    var state: StreamState { get }
}

extension LocalAudio {
    /// Sets `active`.
    public func setEnabled(_ isEnabled: Bool) { active = isEnabled }

    /// Returns `active`.
    public func getEnabled() -> Bool { active }

    /// Returns `extraValue`.
    public func getExtraValue() -> String { extraValue }

    /// Sets `extraValue`.
    public func setExtraValue(_ value: String) { extraValue = value }

    /// `.live`, for types of applications, such as doubles in tests.
    public var state: StreamState { .live }
}

final class LocalAudioStream: LocalAudio {
    private let identities = StreamIdentities()
    private let capture: LocalCapture
    let settings: StreamSettings

    init(extraValue: String, capture: LocalCapture) {
        settings = StreamSettings(
            StreamAttributes(extraValue: extraValue, isActive: capture.requested.isAudioOn))
        self.capture = capture
        // The audio session may switch microphones off.
        SoundUse.choice.observe(as: self) { [weak self] in self?.requestChanged() }
        // It may have done so meanwhile.
        requestChanged()
    }

    deinit { SoundUse.choice.stopObserving(as: self) }

    var id: Int { identities.newest.id }
    var owner: String { identities.newest.owner }
    var state: StreamState { StreamState(capture.streamState(of: .audio)) }

    var active: Bool {
        get { capture.requested.isAudioActive }
        set {
            capture.changeLater {
                $0.isAudioActive = newValue
            } failed: { [settings, weak capture] in
                if let capture { settings.follow { capture.requested.isAudioOn } }
            }
            requestChanged()
        }
    }

    var extraValue: String {
        get { settings.attributes.extraValue }
        set { settings.change(StreamChange(extraValue: newValue)) }
    }

    var alwaysOn: Bool {
        get { settings.attributes.isAlwaysOn }
        set { settings.change(StreamChange(isAlwaysOn: newValue)) }
    }

    /// The request of the capture, which has `active`, may have changed.
    func requestChanged() { settings.follow { [capture] in capture.requested.isAudioOn } }

    func published(id: Int, owner: String) { identities.add(id, owner) }

    func unpublished(owner: String) { identities.remove(owner) }
}

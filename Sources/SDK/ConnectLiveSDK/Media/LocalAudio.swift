internal import RoomClient
internal import RoomProtocol

/// The local audio.
public final class LocalAudio: Sendable {
    private let identities = StreamIdentities()
    private let capture: LocalCapture
    /// Free text that all participants see.
    public let extraValue: String

    init(extraValue: String, capture: LocalCapture) {
        self.extraValue = extraValue
        self.capture = capture
    }

    /// Whether the audio is that of its microphone. The other participants see the same.
    public var state: StreamState { StreamState(capture.streamState(of: .audio)) }

    /// Whether the audio is captured. False frees the microphone, and the other participants see that the audio waits.
    public var active: Bool {
        get { capture.requested.isAudioActive }
        set { capture.changeLater { $0.isAudioActive = newValue } }
    }

    public func setEnabled(_ isEnabled: Bool) { active = isEnabled }

    public func getEnabled() -> Bool { active }

    /// The server's id in the room in which it was published last. 0 before it is published.
    public var id: Int { identities.newest.id }
    /// The local participant's id in that room. Empty before it is published.
    public var owner: String { identities.newest.owner }

    public func getExtraValue() -> String { extraValue }

    func published(id: Int, owner: String) { identities.add(id, owner) }

    func unpublished(owner: String) { identities.remove(owner) }
}

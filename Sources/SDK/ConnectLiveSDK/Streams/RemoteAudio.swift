internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// Audio of another participant. It needs no subscription: the server fills four slots.
public final class RemoteAudio: Sendable {
    /// The stream id, unique in the room.
    public let id: Int
    /// The participant's id.
    public let owner: String
    /// The publisher's free text.
    public let extraValue: String
    private let currentState: Mutex<StreamState>

    init(_ info: StreamInfo, owner: String) {
        id = info.id
        extraValue = info.extraValue
        currentState = Mutex(StreamState(info.state))
        self.owner = owner
    }

    /// Whether the audio is that of its source. Changes with `onRemoteAudioChanged`.
    public var state: StreamState { currentState.withLock { $0 } }

    func set(_ state: StreamState) { currentState.withLock { $0 = state } }

    public func getExtraValue() -> String { extraValue }
}

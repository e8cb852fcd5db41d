internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// Audio of another participant. It needs no subscription: the server fills four slots. Callable on any thread.
public protocol RemoteAudio: AnyObject, Sendable {
    /// The stream id, unique in the room.
    var id: Int { get }
    /// The participant's id.
    var owner: String { get }
    /// The publisher's free text.
    var extraValue: String { get }
    /// Whether the audio is that of its source. Changes with `onRemoteAudioChanged`. (Linux)
    var state: StreamState { get }
}

extension RemoteAudio {
    public func getExtraValue() -> String { extraValue }

    /// `.live`, for types of applications, such as doubles in tests.
    public var state: StreamState { .live }
}

final class RemoteAudioStream: RemoteAudio {
    let id: Int
    let owner: String
    let extraValue: String
    private let currentState: Mutex<StreamState>

    init(_ info: StreamInfo, owner: String) {
        id = info.id
        extraValue = info.attributes.extraValue
        currentState = Mutex(StreamState(info.state))
        self.owner = owner
    }

    var state: StreamState { currentState.withLock { $0 } }

    func set(_ state: StreamState) { currentState.withLock { $0 = state } }
}

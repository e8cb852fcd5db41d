internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// Audio of another participant. It needs no subscription: the server fills four slots with the streams in which somebody
/// speaks. Callable on any thread.
public protocol RemoteAudio: AnyObject, Sendable {
    /// The stream id, unique in the room.
    var id: Int { get }
    /// The participant's id.
    var owner: String { get }
    /// Whether the publisher has the audio on. Changes with `onRemoteAudioStateChanged`, as do `extraValue` and
    /// `alwaysOn`.
    var active: Bool { get }
    /// The publisher's free text.
    var extraValue: String { get }
    /// Whether the publisher asks that the audio is heard even if others are louder.
    var alwaysOn: Bool { get }
    /// Whether the audio is that of its source. Changes with `onRemoteAudioChanged`. (Linux)
    var state: StreamState { get }
}

extension RemoteAudio {
    public func getExtraValue() -> String { extraValue }

    public func isEnabled() -> Bool { active }

    public func isAlwaysOn() -> Bool { alwaysOn }

    /// `.live`, for types of applications, such as doubles in tests.
    public var state: StreamState { .live }
}

final class RemoteAudioStream: RemoteAudio {
    let id: Int
    let owner: String
    private let published: Mutex<StreamInfo>

    init(_ info: StreamInfo, owner: String) {
        id = info.id
        published = Mutex(info)
        self.owner = owner
    }

    var active: Bool { published.withLock { $0.attributes.isActive } }
    var extraValue: String { published.withLock { $0.attributes.extraValue } }
    var alwaysOn: Bool { published.withLock { $0.attributes.isAlwaysOn } }
    var state: StreamState { StreamState(published.withLock { $0.state }) }

    func apply(_ change: StreamChange) { published.withLock { $0.apply(change) } }
}

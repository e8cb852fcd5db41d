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
    /// Whether the audio is not played here. False at first. Holds for as long as the stream, in a slot or not. (Linux)
    var isMuted: Bool { get set }
    /// How loud the audio is played: a factor for samples, 0 to 2. 1, the default, plays it as it comes. (Linux)
    var volume: Double { get set }
    /// Whether the audio is that of its source. Changes with `onRemoteAudioChanged`. (Linux)
    var state: StreamState { get }
}

extension RemoteAudio {
    /// Returns `extraValue`.
    public func getExtraValue() -> String { extraValue }

    /// Returns `active`.
    public func isEnabled() -> Bool { active }

    /// Returns `alwaysOn`.
    public func isAlwaysOn() -> Bool { alwaysOn }

    /// `.live`, for types of applications, such as doubles in tests.
    public var state: StreamState { .live }

    /// False, for types of applications. Setting it does nothing.
    public var isMuted: Bool {
        get { false }
        set {}
    }

    /// 1, likewise.
    public var volume: Double {
        get { 1 }
        set {}
    }
}

final class RemoteAudioStream: RemoteAudio {
    let id: Int
    let owner: String
    private let published: Mutex<StreamInfo>

    struct Volume: Sendable {
        var factor = 1.0
        var isMuted = false
    }

    private let played = Mutex((volume: Volume(), hasEnded: false))
    private let setVolume: @Sendable (Int, Volume) -> Void

    init(_ info: StreamInfo, owner: String, setVolume: @escaping @Sendable (Int, Volume) -> Void) {
        self.setVolume = setVolume
        id = info.id
        published = Mutex(info)
        self.owner = owner
    }

    var active: Bool { published.withLock { $0.attributes.isActive } }
    var extraValue: String { published.withLock { $0.attributes.extraValue } }
    var alwaysOn: Bool { published.withLock { $0.attributes.isAlwaysOn } }
    var state: StreamState { StreamState(published.withLock { $0.state }) }

    var isMuted: Bool {
        get { played.withLock { $0.volume.isMuted } }
        set { play { $0.isMuted = newValue } }
    }

    var volume: Double {
        get { played.withLock { $0.volume.factor } }
        set { play { $0.factor = newValue.isNaN ? 0 : min(max(0, newValue), 2) } }
    }

    /// Passes volumes on in the order of the calls.
    private func play(_ change: (inout Volume) -> Void) {
        played.withLock { played in
            change(&played.volume)
            if !played.hasEnded { setVolume(id, played.volume) }
        }
    }

    /// The stream has ended, and another one may get its id: passes no more volumes on.
    func end() { played.withLock { $0.hasEnded = true } }

    func apply(_ change: StreamChange) { published.withLock { $0.apply(change) } }
}

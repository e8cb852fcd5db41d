/// How far a room connection is.
public enum RoomStatus: Sendable, Hashable {
    /// Created, not connected yet.
    case initialized
    case connecting
    case connected
    case disconnecting
    /// For good: create another Room to join again.
    case disconnected
}

/// Why a room connection ended.
public enum DisconnectReason: Sendable, Hashable {
    /// The application left, or an error ended the connection. Directly before it, `onError` reports that error.
    case disconnected
    /// The server ended the room, or was stopped. `onError` is not called.
    case destroyed
    /// The server removed this participant. `onError` is not called.
    case kicked
}

/// One's connection to one room, created by `ConnectLive.createRoom`. Keep it for as long as it is to last: a room that
/// is let go is left. Every call may be made on any thread.
public protocol Room: AnyObject, Sendable {
    var isConnected: Bool { get }
    var status: RoomStatus { get }
    var localParticipant: LocalParticipant { get }
    /// The others in the room, by their id.
    var remoteParticipants: [String: RemoteParticipant] { get }

    /// Joins the room of this name: 1 to 32 letters, digits and hyphens. `onConnected`, or `onError` and
    /// `onDisconnected`, tell how it went, within 10 s. A room is connected once.
    func connect(roomId: String)
    /// Leaves; `onDisconnected` tells when it is done. No other event comes after this call, nor does the error of a
    /// connection that breaks meanwhile. (Called on another queue than the callback queue, it does not stop an event
    /// that is being delivered.)
    func disconnect()

    /// Publishes, now or as soon as the room is connected; `onLocalMediaPublished` tells when it is done, `onError` why
    /// not. Throws when it is clear at once: 1311 for nil, 1302 for a room that has ended, 1441 for media that another
    /// room has.
    func publish(_ media: (any LocalMedia)?) throws

    /// Subscribes several videos; what goes wrong comes to `onError`.
    func subscribe(videoIds: [Int])
    func subscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void)
    /// Subscribes a video: it arrives from its next keyframe on, which is asked for. Failures are `ConnectLiveError`s:
    /// 1321 subscribed already, 1322 no receiver is free, 1325 no connection, 1328 no such video.
    func subscribe(videoId: Int) async -> Result<Void, any Error>

    /// Unsubscribes several videos; what goes wrong comes to `onError`.
    func unsubscribe(videoIds: [Int])
    func unsubscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void)
    /// Frees the video's receiver. Failures are `ConnectLiveError`s: 1325 no connection, 1327 not subscribed.
    func unsubscribe(videoId: Int) async -> Result<Void, any Error>

    /// Ids of the participants of whom a video is subscribed.
    func getVideoOccupants() -> [String]
    /// Ids of the participants who are heard: those that hold one of the four audio slots.
    func getAudioOccupants() -> [String]
}

/// Hears what happens in a room, in order, on the queue that `ConnectLive.callbackQueue` describes. The room does not
/// keep it alive.
public protocol RoomDelegate: AnyObject {
    /// Connected. `participantIds` are all who are in the room, one's own id first; their streams are in
    /// `Room.remoteParticipants`, and only later ones are announced by `onRemoteVideoPublished`.
    func onConnected(participantIds: [String])
    /// The room is over. No event comes after it, but the error that answers another `connect`. Completions of
    /// `subscribe` and `unsubscribe` may.
    func onDisconnected(reason: DisconnectReason)
    /// When `isCritical`, the error ended the room and `onDisconnected` comes next. The codes are listed in
    /// docs/errors.md.
    func onError(code: Int, message: String, isCritical: Bool)
    func onParticipantEntered(remoteParticipant: RemoteParticipant)
    /// After `onRemoteVideoUnpublished` and `onRemoteAudioUnpublished` of what the participant published.
    func onParticipantLeft(remoteParticipant: RemoteParticipant)

    /// 33 when the server let us in, 66 when sessions are negotiated, 100 when media can flow.
    func onConnecting(progress: Float)
    func onLocalMediaPublished(localMedia: (any LocalMedia)?)
    func onRemoteVideoPublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo)
    /// A subscription of it has ended by itself.
    func onRemoteVideoUnpublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo)
    func onRemoteAudioPublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio)
    func onRemoteAudioUnpublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio)
    /// The sound got one of the four slots: it is heard from now on.
    func onRemoteAudioSubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio)
    func onRemoteAudioUnsubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio)
}

extension RoomDelegate {
    public func onConnecting(progress: Float) {}
    public func onLocalMediaPublished(localMedia: (any LocalMedia)?) {}
    public func onRemoteVideoPublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {}
    public func onRemoteVideoUnpublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {}
    public func onRemoteAudioPublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {}
    public func onRemoteAudioUnpublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {}
    public func onRemoteAudioSubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {}
    public func onRemoteAudioUnsubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {}
}

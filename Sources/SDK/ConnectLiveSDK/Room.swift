/// The state of a room connection.
public enum RoomStatus: Sendable, Hashable {
    /// Created, but not connected yet.
    case initialized
    case connecting
    case connected
    case disconnecting
    /// Final: create another Room to join again.
    case disconnected
}

/// Why a room connection ended.
public enum DisconnectReason: Sendable, Hashable {
    /// The application left, or an error ended the connection. In the second case, `onError` comes directly before.
    case disconnected
    /// The server ended the room, or stopped. `onError` is not called.
    case destroyed
    /// The server removed this participant. `onError` is not called.
    case kicked
}

/// A connection to a room, created by `ConnectLive.createRoom`. Retain it: releasing it leaves the room. All calls are
/// allowed on any thread.
public protocol Room: AnyObject, Sendable {
    var isConnected: Bool { get }
    var status: RoomStatus { get }
    var localParticipant: LocalParticipant { get }
    /// The other participants, by id. After `onConnected`, they and their streams change with their callbacks.
    var remoteParticipants: [String: RemoteParticipant] { get }

    /// Joins a room by its name: 1 to 32 letters, digits and hyphens. Within 10 s (17 s with a TURN server), `onConnected`,
    /// or `onError` and `onDisconnected`, report the result. A room connects once.
    func connect(roomId: String)
    /// Leaves the room. `onDisconnected` reports the end. No other event follows this call, not even an error of the
    /// connection. (A call on another queue than the callback queue does not stop an event that is being delivered.)
    func disconnect()

    /// Publishes now, or when the room is connected. `onLocalMediaPublished` reports success, `onError` a failure.
    /// Throws 1311 for nil, 1302 if the room has ended, 1441 if this room has the media already.
    func publish(_ media: (any LocalMedia)?) throws
    /// Ends the streams of published media, or a `publish` that is still waiting. The media goes on capturing, and can be
    /// published again, here or in another room. `onLocalMediaUnpublished` reports success, `onError` a failure. Throws
    /// 1311 if this room does not publish the media.
    func unpublish(_ media: (any LocalMedia)?) throws

    /// Subscribes to several videos. `onError` reports failures.
    func subscribe(videoIds: [Int])
    func subscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void)
    /// Subscribes to a video, which begins with a requested keyframe. Failures are `ConnectLiveError`s: 1321 already
    /// subscribed, 1322 no free receiver, 1325 not connected, 1328 no such video.
    func subscribe(videoId: Int) async -> Result<Void, any Error>

    /// Unsubscribes from several videos. `onError` reports failures.
    func unsubscribe(videoIds: [Int])
    func unsubscribe(videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void)
    /// Frees the video's receiver. Failures are `ConnectLiveError`s: 1325 not connected, 1327 not subscribed.
    func unsubscribe(videoId: Int) async -> Result<Void, any Error>

    /// The ids of the participants with a subscribed video.
    func getVideoOccupants() -> [String]
    /// The ids of the participants that are heard: those in one of the four audio slots.
    func getAudioOccupants() -> [String]
}

/// Receives the events of a room, in order, on the queue of `ConnectLive.callbackQueue`. The room does not retain it.
public protocol RoomDelegate: AnyObject {
    /// The room is connected. `participantIds` has all participants, the local one first. Their streams are in
    /// `Room.remoteParticipants`; only later streams are announced by `onRemoteVideoPublished`.
    func onConnected(participantIds: [String])
    /// The room ended. No event follows, except the error of another `connect`. Completions of `subscribe` and
    /// `unsubscribe` may follow.
    func onDisconnected(reason: DisconnectReason)
    /// An error. If `isCritical`, it ended the room and `onDisconnected` follows. docs/errors.md lists the codes.
    func onError(code: Int, message: String, isCritical: Bool)
    func onParticipantEntered(remoteParticipant: RemoteParticipant)
    /// A participant left. `onRemoteVideoUnpublished` and `onRemoteAudioUnpublished` for its streams come before.
    func onParticipantLeft(remoteParticipant: RemoteParticipant)

    /// 33: the server accepted the join. 66: the sessions are negotiated. 100: media can flow.
    func onConnecting(progress: Float)
    /// The server is lost, and the room tries to return: the attempt's number, from 1, and the reason of the last failure.
    /// Calls wait meanwhile. `onReconnected` reports success. `onError` and `onDisconnected` follow when the room gives up;
    /// see `Config.reconnectSeconds`.
    func onReconnecting(attempt: Int, error: ConnectLiveError)
    /// The room is back, after this time without the server.
    ///
    /// If `wasResumed`, everything goes on: nobody saw this participant leave. Otherwise the room joined again, and published the
    /// same media. `localParticipant` has another id. Events before this one report the participants and streams that are new or
    /// gone: all, if the server restarted. Subscriptions to the other streams go on. Calls that were waiting
    /// have failed with 1312.
    func onReconnected(wasResumed: Bool, seconds: Double)
    /// Media has not reached the server for this time, or if not `isOutgoing`, nothing has arrived from it. The room looks for
    /// another way, and `onMediaRestored` reports success. The connection for calls and events, which `onReconnecting` is about,
    /// may work meanwhile.
    func onMediaInterrupted(isOutgoing: Bool, seconds: Double)
    /// Media flows again, after this time.
    func onMediaRestored(seconds: Double)
    func onLocalMediaPublished(localMedia: (any LocalMedia)?)
    func onLocalMediaUnpublished(localMedia: (any LocalMedia)?)
    /// The camera of published media was lost, returned and the like. The stream continues, with a stand-in while the
    /// camera is away.
    func onLocalVideoChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent)
    /// The same about the microphone. Silence stands in for it.
    func onLocalAudioChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent)
    /// The loudspeaker that plays the audio of the room is away or back. Audio is dropped in real time meanwhile.
    func onLoudspeakerChanged(event: LocalDeviceEvent)
    func onRemoteVideoPublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo)
    /// A video ended, and its subscription with it.
    func onRemoteVideoUnpublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo)
    /// The `state` of a video has changed: it waits for its source, or shows it again.
    func onRemoteVideoChanged(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo)
    /// The `limitation` of a subscribed video has changed.
    func onRemoteVideoQualityChanged(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo)
    func onRemoteAudioPublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio)
    func onRemoteAudioUnpublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio)
    /// The `state` of audio has changed.
    func onRemoteAudioChanged(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio)
    /// The audio has one of the four slots, so it is heard.
    func onRemoteAudioSubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio)
    func onRemoteAudioUnsubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio)
}

extension RoomDelegate {
    public func onConnecting(progress: Float) {}
    public func onReconnecting(attempt: Int, error: ConnectLiveError) {}
    public func onReconnected(wasResumed: Bool, seconds: Double) {}
    public func onMediaInterrupted(isOutgoing: Bool, seconds: Double) {}
    public func onMediaRestored(seconds: Double) {}
    public func onLocalMediaPublished(localMedia: (any LocalMedia)?) {}
    public func onLocalMediaUnpublished(localMedia: (any LocalMedia)?) {}
    public func onLocalVideoChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent) {}
    public func onLocalAudioChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent) {}
    public func onLoudspeakerChanged(event: LocalDeviceEvent) {}
    public func onRemoteVideoPublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {}
    public func onRemoteVideoUnpublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {}
    public func onRemoteVideoChanged(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {}
    public func onRemoteVideoQualityChanged(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {}
    public func onRemoteAudioPublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {}
    public func onRemoteAudioUnpublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {}
    public func onRemoteAudioChanged(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {}
    public func onRemoteAudioSubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {}
    public func onRemoteAudioUnsubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {}
}

/// Receives the events of a room, in order, on the queue of `ConnectLive.callbackQueue`. The room does not retain it.
///
/// While the queue is busy, a later event about a stream's state or quality, or about the loudspeaker, and a later `onStat` take the
/// place of the waiting one. An audio slot that was gained and lost meanwhile is not reported. 4096 callbacks may wait; one more event ends the
/// room.
public protocol RoomDelegate: AnyObject {
    /// The room is connected. `participantIds` has all participants, the local one first. Their streams are in
    /// `Room.remoteParticipants`; only later streams are announced by `onRemoteVideoPublished`.
    func onConnected(participantIds: [String])
    /// The room ended. No event follows, except the error of another `connect`. Completions of `subscribe` and
    /// `unsubscribe` may follow.
    func onDisconnected(reason: DisconnectReason)
    /// An error. If `isCritical`, it ended the room and `onDisconnected` follows. docs/errors.md lists the codes.
    func onError(code: Int, message: String, isCritical: Bool)
    /// A participant joined. The streams that it has are in `remoteParticipant`, and events report later ones.
    func onParticipantEntered(remoteParticipant: any RemoteParticipant)
    /// A participant left. `onRemoteVideoUnpublished` and `onRemoteAudioUnpublished` for its streams come before.
    func onParticipantLeft(remoteParticipant: any RemoteParticipant)

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
    /// have failed, with `[1312]` as the cause in their messages.
    func onReconnected(wasResumed: Bool, seconds: Double)
    /// Media has not reached the server for this time, or if not `isOutgoing`, nothing has arrived from it. The room looks for
    /// another way, and `onMediaRestored` reports success. The connection for calls and events, which `onReconnecting` is about,
    /// may work meanwhile.
    func onMediaInterrupted(isOutgoing: Bool, seconds: Double)
    /// Media flows again, after this time. Also without `onMediaInterrupted` before, after a pause of two seconds.
    func onMediaRestored(seconds: Double)
    /// The streams of local media are in the room. Their ids are set.
    func onLocalMediaPublished(localMedia: (any LocalMedia)?)
    /// The streams of local media have left the room, which goes on.
    func onLocalMediaUnpublished(localMedia: (any LocalMedia)?)
    /// The camera of published media was lost, returned and the like. The stream continues, with a stand-in while the
    /// camera is away.
    func onLocalVideoChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent)
    /// The same about the microphone. Silence stands in for it.
    func onLocalAudioChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent)
    /// The loudspeaker that plays the audio of the room is away or back. Audio is dropped in real time meanwhile.
    func onLoudspeakerChanged(event: LocalDeviceEvent)
    /// Another participant publishes a video from now on. It is received once `Room.subscribe` has asked for it.
    func onRemoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
    /// A video ended, and its subscription with it.
    func onRemoteVideoUnpublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
    /// The `state` of a video has changed: it waits for its source, or shows it again. (Linux)
    func onRemoteVideoChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
    /// `active`, `extraValue` or `sort` of a video has changed: its publisher turned it off or on, or set another value.
    func onRemoteVideoStateChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
    /// The `limitation` of a subscribed video has changed.
    func onRemoteVideoQualityChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
    /// Another participant publishes audio from now on. It needs no subscription.
    func onRemoteAudioPublished(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
    /// Audio of another participant ended.
    func onRemoteAudioUnpublished(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
    /// The `state` of audio has changed. (Linux)
    func onRemoteAudioChanged(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
    /// `active`, `alwaysOn` or `extraValue` of audio has changed.
    func onRemoteAudioStateChanged(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
    /// Another participant has sent a message with `Room.sendUserMessage`. The messages of one participant come in its order,
    /// each once.
    func onUserMessage(senderId: String, message: String, type: String)
    /// The quality of the room, each `Config.qualityStatInterval` seconds while it is connected.
    func onStat(stat: QualityStat)
    /// The form without a type, for applications that do not implement the other one.
    func onUserMessage(senderId: String, message: String)
    /// The audio has one of the four slots, so it is heard.
    func onRemoteAudioSubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
    /// The audio lost its slot to somebody who speaks, so it is not heard. Slots change often: update an interface at
    /// intervals.
    func onRemoteAudioUnsubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
}

extension RoomDelegate {
    public func onConnecting(progress: Float) {}
    public func onReconnecting(attempt: Int, error: ConnectLiveError) {}
    public func onReconnected(wasResumed: Bool, seconds: Double) {}
    public func onMediaInterrupted(isOutgoing: Bool, seconds: Double) {}
    public func onMediaRestored(seconds: Double) {}
    /// The streams of local media are in the room. Their ids are set.
    public func onLocalMediaPublished(localMedia: (any LocalMedia)?) {}
    /// The streams of local media have left the room, which goes on.
    public func onLocalMediaUnpublished(localMedia: (any LocalMedia)?) {}
    public func onLocalVideoChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent) {}
    public func onLocalAudioChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent) {}
    public func onLoudspeakerChanged(event: LocalDeviceEvent) {}
    /// Another participant publishes a video from now on. It is received once `Room.subscribe` has asked for it.
    public func onRemoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {}
    public func onRemoteVideoUnpublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {}
    public func onRemoteVideoChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {}
    public func onRemoteVideoStateChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {}
    public func onRemoteVideoQualityChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {}
    /// Another participant publishes audio from now on. It needs no subscription.
    public func onRemoteAudioPublished(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {}
    /// Audio of another participant ended.
    public func onRemoteAudioUnpublished(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {}
    public func onRemoteAudioChanged(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {}
    public func onRemoteAudioStateChanged(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {}
    public func onUserMessage(senderId: String, message: String, type: String) {
        onUserMessage(senderId: senderId, message: message)
    }
    public func onUserMessage(senderId: String, message: String) {}
    public func onRemoteAudioSubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {}
    /// The audio lost its slot to somebody who speaks, so it is not heard. Slots change often: update an interface at
    /// intervals.
    public func onRemoteAudioUnsubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {}
}

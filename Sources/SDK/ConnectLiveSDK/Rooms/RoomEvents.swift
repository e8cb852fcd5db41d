internal import RoomProtocol

/// The events of a room as a sequence, beside the delegate or without one: `for await event in room.events`.
///
/// It has the events from the call of `Room.events` on, in their order, and ends after `.disconnected`, when the room is released, or
/// when the task of its loop is cancelled. Each call of `Room.events` returns a sequence of its own, which one loop reads at a time.
///
/// Participants and their streams change with the callbacks of the room, on `ConnectLive.callbackQueue`, so a loop may see newer values
/// than those of its event. While the loop is busy, events replace waiting ones as for the delegate. At most 4096 wait. One more ends
/// the sequence, whose last event is then an error with the code 1302. (Linux)
public struct RoomEvents: AsyncSequence, Sendable {
    /// A call of `RoomDelegate`, with its parameters.
    public enum Event: Sendable {
        case connecting(progress: Float)
        case connected(participantIds: [String])
        case disconnected(reason: DisconnectReason)
        case error(code: Int, message: String, isCritical: Bool)
        case participantEntered(remoteParticipant: any RemoteParticipant)
        case participantLeft(remoteParticipant: any RemoteParticipant)
        case reconnecting(attempt: Int, error: ConnectLiveError)
        case reconnected(wasResumed: Bool, seconds: Double)
        case mediaInterrupted(isOutgoing: Bool, seconds: Double)
        case mediaRestored(seconds: Double)
        case localMediaPublished(localMedia: any LocalMedia)
        case localMediaUnpublished(localMedia: any LocalMedia)
        /// The media is nil if the application has released it.
        case localVideoChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent)
        case localAudioChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent)
        case loudspeakerChanged(event: LocalDeviceEvent)
        case remoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
        case remoteVideoUnpublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
        case remoteVideoChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
        case remoteVideoStateChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
        case remoteVideoQualityChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
        case remoteAudioPublished(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        case remoteAudioUnpublished(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        case remoteAudioChanged(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        case remoteAudioStateChanged(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        case remoteAudioSubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        case remoteAudioUnsubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        case userMessage(senderId: String, message: String, type: String)
        case stat(QualityStat)
    }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let buffer: EventBuffer
        fileprivate var signal: AsyncStream<Void>.Iterator

        public mutating func next() async -> Event? { await next(isolation: nil) }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> Event? {
            while true {
                if let event = buffer.take() { return event }
                // Nil at the end, and for a task that is cancelled.
                if await signal.next(isolation: actor) == nil { return buffer.take() }
            }
        }
    }

    let buffer: EventBuffer

    public func makeAsyncIterator() -> Iterator {
        Iterator(buffer: buffer, signal: buffer.signal.makeAsyncIterator())
    }
}

extension RoomEvents.Event {
    static func error(_ error: RoomError, isCritical: Bool) -> Self {
        .error(code: error.code.number, message: error.sdkMessage, isCritical: isCritical)
    }

    /// Calls the delegate.
    func tell(_ delegate: any RoomDelegate) {
        switch self {
        case .connecting(let progress): delegate.onConnecting(progress: progress)
        case .connected(let ids): delegate.onConnected(participantIds: ids)
        case .disconnected(let reason): delegate.onDisconnected(reason: reason)
        case .error(let code, let message, let isCritical):
            delegate.onError(code: code, message: message, isCritical: isCritical)
        case .participantEntered(let one): delegate.onParticipantEntered(remoteParticipant: one)
        case .participantLeft(let one): delegate.onParticipantLeft(remoteParticipant: one)
        case .reconnecting(let attempt, let error): delegate.onReconnecting(attempt: attempt, error: error)
        case .reconnected(let wasResumed, let seconds): delegate.onReconnected(wasResumed: wasResumed, seconds: seconds)
        case .mediaInterrupted(let isOutgoing, let seconds):
            delegate.onMediaInterrupted(isOutgoing: isOutgoing, seconds: seconds)
        case .mediaRestored(let seconds): delegate.onMediaRestored(seconds: seconds)
        case .localMediaPublished(let media): delegate.onLocalMediaPublished(localMedia: media)
        case .localMediaUnpublished(let media): delegate.onLocalMediaUnpublished(localMedia: media)
        case .localVideoChanged(let media, let event): delegate.onLocalVideoChanged(localMedia: media, event: event)
        case .localAudioChanged(let media, let event): delegate.onLocalAudioChanged(localMedia: media, event: event)
        case .loudspeakerChanged(let event): delegate.onLoudspeakerChanged(event: event)
        case .userMessage(let sender, let message, let type):
            delegate.onUserMessage(senderId: sender, message: message, type: type)
        case .stat(let stat): delegate.onStat(stat: stat)
        case .remoteVideoPublished, .remoteVideoUnpublished, .remoteVideoChanged, .remoteVideoStateChanged,
            .remoteVideoQualityChanged:
            tellOfVideo(delegate)
        case .remoteAudioPublished, .remoteAudioUnpublished, .remoteAudioChanged, .remoteAudioStateChanged,
            .remoteAudioSubscribed, .remoteAudioUnsubscribed:
            tellOfAudio(delegate)
        }
    }

    private func tellOfVideo(_ delegate: any RoomDelegate) {
        switch self {
        case .remoteVideoPublished(let one, let video):
            delegate.onRemoteVideoPublished(remoteParticipant: one, remoteVideo: video)
        case .remoteVideoUnpublished(let one, let video):
            delegate.onRemoteVideoUnpublished(remoteParticipant: one, remoteVideo: video)
        case .remoteVideoChanged(let one, let video):
            delegate.onRemoteVideoChanged(remoteParticipant: one, remoteVideo: video)
        case .remoteVideoStateChanged(let one, let video):
            delegate.onRemoteVideoStateChanged(remoteParticipant: one, remoteVideo: video)
        case .remoteVideoQualityChanged(let one, let video):
            delegate.onRemoteVideoQualityChanged(remoteParticipant: one, remoteVideo: video)
        default: break
        }
    }

    private func tellOfAudio(_ delegate: any RoomDelegate) {
        switch self {
        case .remoteAudioPublished(let one, let audio):
            delegate.onRemoteAudioPublished(remoteParticipant: one, remoteAudio: audio)
        case .remoteAudioUnpublished(let one, let audio):
            delegate.onRemoteAudioUnpublished(remoteParticipant: one, remoteAudio: audio)
        case .remoteAudioChanged(let one, let audio):
            delegate.onRemoteAudioChanged(remoteParticipant: one, remoteAudio: audio)
        case .remoteAudioStateChanged(let one, let audio):
            delegate.onRemoteAudioStateChanged(remoteParticipant: one, remoteAudio: audio)
        case .remoteAudioSubscribed(let one, let audio):
            delegate.onRemoteAudioSubscribed(remoteParticipant: one, remoteAudio: audio)
        case .remoteAudioUnsubscribed(let one, let audio):
            delegate.onRemoteAudioUnsubscribed(remoteParticipant: one, remoteAudio: audio)
        default: break
        }
    }
}

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
        /// The room is being joined; `progress` is in percent.
        case connecting(progress: Float)
        /// The room is joined. The ids include the local one.
        case connected(participantIds: [String])
        /// The room has ended. The last event.
        case disconnected(reason: DisconnectReason)
        /// Something failed. A critical error ends the room.
        case error(code: Int, message: String, isCritical: Bool)
        /// A participant has joined.
        case participantEntered(remoteParticipant: any RemoteParticipant)
        /// A participant has left.
        case participantLeft(remoteParticipant: any RemoteParticipant)
        /// The connection is lost, and an attempt to return begins.
        case reconnecting(attempt: Int, error: ConnectLiveError)
        /// The room is back after `seconds` of outage.
        case reconnected(wasResumed: Bool, seconds: Double)
        /// No media has passed for `seconds`.
        case mediaInterrupted(isOutgoing: Bool, seconds: Double)
        /// Media passes again after `seconds`.
        case mediaRestored(seconds: Double)
        /// The room has published local media.
        case localMediaPublished(localMedia: any LocalMedia)
        /// Local media is published no longer.
        case localMediaUnpublished(localMedia: any LocalMedia)
        /// The media is nil if the application has released it.
        case localVideoChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent)
        /// The microphone was lost, or is back.
        case localAudioChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent)
        /// The loudspeaker was lost, or is back.
        case loudspeakerChanged(event: LocalDeviceEvent)
        /// A participant publishes a video.
        case remoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
        /// A video has ended.
        case remoteVideoUnpublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
        /// The `state` of a video has changed: it waits for its source, or shows it again.
        case remoteVideoChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
        /// `active`, `extraValue` or `sort` of a video has changed.
        case remoteVideoStateChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
        /// The limitation of a received video has changed.
        case remoteVideoQualityChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
        /// A participant publishes audio.
        case remoteAudioPublished(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        /// Audio has ended.
        case remoteAudioUnpublished(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        /// The `state` of audio has changed.
        case remoteAudioChanged(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        /// `active`, `extraValue` or `alwaysOn` of audio has changed.
        case remoteAudioStateChanged(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        /// Audio has got a slot, and is heard.
        case remoteAudioSubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        /// Audio has lost its slot.
        case remoteAudioUnsubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
        /// A participant has sent a message.
        case userMessage(senderId: String, message: String, type: String)
        /// The quality of the room in the last interval.
        case stat(QualityStat)
    }

    /// Reads the events one by one.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let buffer: EventBuffer
        fileprivate var signal: AsyncStream<Void>.Iterator

        public mutating func next() async -> Event? { await next(isolation: nil) }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> Event? {
            while true {
                if Task.isCancelled { buffer.cancel() }
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

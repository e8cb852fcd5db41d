internal import RoomClient
internal import RoomProtocol
internal import Synchronization

extension RoomSession {
    /// Called by the link, with one event at a time.
    func handle(_ event: RoomEvent) {
        switch event {
        case .connecting(let percent): tell { $0.tell(.connecting(progress: Float(percent))) }
        case .connected(let participant, let others): connected(as: participant, with: others)
        case .participantEntered(let info): entered(info)
        case .participantLeft(let info): left(info)
        case .streamPublished(let participant, let info): published(info, by: participant)
        case .streamUnpublished(let participant, let info): unpublished(info, by: participant)
        case .streamChanged(let participant, let info, let change): changed(change, of: info.id, by: participant)
        case .userMessage(let body):
            tell { $0.tell(.userMessage(senderId: body.from, message: body.text, type: body.kind)) }
        case .qualityChanged(let participant, let stream, let limitation):
            let limitation = limitation.map { VideoLimitation($0) }
            tell(replacing: .quality(stream)) { [remotes] audience in
                guard let participant = remotes[participant], case .video(let video) = participant[stream] else {
                    return
                }
                // Unsubscribed meanwhile.
                guard video.isSubscribed || limitation == nil else { return }
                video.set(limitation)
                audience.tell(.remoteVideoQualityChanged(remoteParticipant: participant, remoteVideo: video))
            }
        case .subscriptionEnded(let participant, let stream, let error):
            subscriptionEnded(stream, of: participant, error)
        case .audioHeard(let participant, let stream): heard(stream, of: participant)
        case .audioUnheard(let participant, let stream): unheard(stream, of: participant)
        case .loudspeaker(let event):
            tell(replacing: .loudspeaker) { $0.tell(.loudspeakerChanged(event: LocalDeviceEvent(event))) }
        case .reconnecting(let attempt, let error):
            let error = ConnectLiveError(error)
            tell { $0.tell(.reconnecting(attempt: attempt, error: error)) }
        case .mediaInterrupted(let interruption):
            mediaWays.withLock { $0.interruption = interruption }
            tell { $0.tell(.mediaInterrupted(isOutgoing: interruption.isOutgoing, seconds: interruption.seconds)) }
        case .mediaRestored(let seconds, let way):
            mediaWays.withLock { $0.restored = way }
            tell { $0.tell(.mediaRestored(seconds: seconds)) }
        case .republished(let participant, let streams): republished(streams, by: participant)
        // `reconnected` tells the id.
        case .joinedAgain: break
        case .reconnected(let back): reconnected(back)
        case .statistics(let statistics): tell(statistics)
        case .problem(let error): problem(error)
        case .ended(let reason, let error): end(.init(reason), error)
        }
    }

    private func connected(as participant: String, with others: [ParticipantInfo]) {
        own.entered(as: participant)
        for info in others { remotes.add(makeParticipant(info)) }
        let waiting = state.withLock { state -> [LocalMediaSession] in
            guard state.status == .connecting else { return [] }
            state.status = .connected
            for index in state.publications.indices { state.publications[index].phase = .publishing }
            return state.publications.map(\.media)
        }
        authentication.observe(as: self) { [weak self] error in self?.problem(error) }
        let everyone = [participant] + others.map(\.id)
        tell { $0.tell(.connected(participantIds: everyone)) }
        for media in waiting { publishNow(media) }
    }

    private func makeParticipant(_ info: ParticipantInfo) -> OtherParticipant {
        OtherParticipant(info) { [weak self] error in
            self?.problem(error)
        } setVolume: { [weak self] stream, volume in
            self?.link.setVolume(volume.factor, isMuted: volume.isMuted, of: stream)
        }
    }

    private func reconnected(_ back: Return) {
        let wasResumed = back.kind == .resumed
        if case .rejoined(let participant) = back.kind { own.entered(as: participant) }
        let duration = back.seconds
        tell { $0.tell(.reconnected(wasResumed: wasResumed, seconds: duration)) }
    }

    private func entered(_ info: ParticipantInfo) {
        let participant = makeParticipant(info)
        tell { [remotes] audience in
            remotes.add(participant)
            audience.tell(.participantEntered(remoteParticipant: participant))
        }
    }

    private func left(_ info: ParticipantInfo) {
        // One callback each, because the application may call `disconnect()` in any of them.
        for stream in info.streams.sorted(by: { $0.id < $1.id }) {
            tell { [remotes] audience in remotes[info.id].map { Self.report(audience, unpublished: stream, of: $0) } }
        }
        tell { [remotes] audience in
            guard let participant = remotes.remove(info.id) else { return }
            participant.endAudios()
            audience.tell(.participantLeft(remoteParticipant: participant))
            // Afterwards, so that the application can still find its views by their videos.
            participant.detachViews()
        }
    }

    private func published(_ info: StreamInfo, by id: String) {
        tell { [remotes] audience in
            guard let participant = remotes[id] else { return }
            switch participant.add(info) {
            case .video(let video):
                audience.tell(.remoteVideoPublished(remoteParticipant: participant, remoteVideo: video))
            case .audio(let audio):
                audience.tell(.remoteAudioPublished(remoteParticipant: participant, remoteAudio: audio))
            }
        }
    }

    private static func report(
        _ audience: DelegateQueue.Audience, unpublished stream: StreamInfo, of participant: OtherParticipant
    ) {
        switch participant[stream.id] {
        case .video(let video):
            video.setSubscribed(false)
            video.resetView()
            audience.tell(.remoteVideoUnpublished(remoteParticipant: participant, remoteVideo: video))
        case .audio(let audio):
            audience.tell(.remoteAudioUnpublished(remoteParticipant: participant, remoteAudio: audio))
        case nil: break
        }
    }

    private func unpublished(_ info: StreamInfo, by id: String) {
        tell { [remotes] audience in
            guard let participant = remotes[id] else { return }
            let video = participant.videoStreams[info.id]
            Self.report(audience, unpublished: info, of: participant)
            participant.remove(info.id)
            // Afterwards, so that the application can still find its views by their videos.
            video?.detach()
        }
    }

    private func changed(_ change: StreamChange, of stream: Int, by id: String) {
        if let state = change.state {
            tell(replacing: .state(stream)) { [remotes] audience in
                guard let participant = remotes[id] else { return }
                switch participant[stream] {
                case .video(let video):
                    video.apply(StreamChange(state: state))
                    audience.tell(.remoteVideoChanged(remoteParticipant: participant, remoteVideo: video))
                case .audio(let audio):
                    audio.apply(StreamChange(state: state))
                    audience.tell(.remoteAudioChanged(remoteParticipant: participant, remoteAudio: audio))
                case nil: break
                }
            }
        }
        var attributes = change
        attributes.state = nil
        guard !attributes.isEmpty else { return }
        tell { [remotes, attributes] audience in
            guard let participant = remotes[id] else { return }
            switch participant[stream] {
            case .video(let video):
                video.apply(attributes)
                // Videos of the SDK have no member for it.
                guard attributes != StreamChange(isAlwaysOn: attributes.isAlwaysOn) else { return }
                audience.tell(.remoteVideoStateChanged(remoteParticipant: participant, remoteVideo: video))
            case .audio(let audio):
                audio.apply(attributes)
                audience.tell(.remoteAudioStateChanged(remoteParticipant: participant, remoteAudio: audio))
            case nil: break
            }
        }
    }

    private func heard(_ stream: Int, of id: String) {
        state.withLock { $0.heard.append((stream, id)) }
        tell(replacing: .slot(stream)) { [remotes] audience in
            guard let participant = remotes[id], case .audio(let audio) = participant[stream] else { return }
            audience.tell(.remoteAudioSubscribed(remoteParticipant: participant, remoteAudio: audio))
        }
    }

    private func unheard(_ stream: Int, of id: String) {
        state.withLock { $0.heard.removeAll { $0.stream == stream } }
        tell(replacing: .slot(stream)) { [remotes] audience in
            guard let participant = remotes[id], case .audio(let audio) = participant[stream] else { return }
            audience.tell(.remoteAudioUnsubscribed(remoteParticipant: participant, remoteAudio: audio))
        }
    }
}

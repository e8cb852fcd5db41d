import ConnectLiveSDK
import Foundation

/// The samples of the guide for iOS, by their numbers in docs/samples.md. The calls are those of the guide, in its forms.
@MainActor
final class Guide: SampleApp {
    func s2SignInWithSecret(_ done: @escaping (Bool) -> Void) {
        ConnectLive.signIn(serviceId: "SERVICE", serviceSecret: "KEY:SECRET") { code, message in
            if code == 0 {
                done(true)
            } else {
                done(false)
            }
        }
    }

    func s3SignInWithToken(_ done: @escaping (Bool) -> Void) {
        ConnectLive.signIn(serviceId: "SERVICE", token: "TOKEN") { code, message in
            done(code == 0)
        }
    }

    func s4AudioSession() {
        ConnectLive.setAudioSessionConfiguration(
            category: .playAndRecord,
            mode: .videoChat,
            options: [.mixWithOthers, .defaultToSpeaker, .allowBluetooth])
    }

    func s5AudioDelegate() -> CustomAudioDelegate {
        let delegate = CustomAudioDelegate()

        ConnectLive.setAudioSessionConfiguration(
            category: .playAndRecord,
            mode: .videoChat,
            options: [.mixWithOthers, .defaultToSpeaker, .allowBluetooth],
            delegate: delegate)
        return delegate
    }

    func s6View() -> UIRenderView {
        let localView = UIRenderView()
        return localView
    }

    func s7Subclass() -> CustomView {
        let localView = CustomView()
        return localView
    }

    func s9Options() {
        var config = Config()
        config.mediaOptions.audio = true
        config.mediaOptions.video = true
        self.config = config
    }

    func s10CapturerTypes() -> [CapturerType] { [.camera, .bypass, .file] }
    func s11AudioType() -> String {
        LocalMediaOptions.audioType = .music
        LocalMediaOptions.audioType = .voice
        LocalMediaOptions.autoGain = false
        let type: AudioProcessingType = LocalMediaOptions.audioType
        return type.rawValue
    }

    func s12CreateMedia() {
        let media = ConnectLive.createLocalMedia(config: config)
        self.media = media
    }

    func s13Attach(_ localView: UIRenderView) {
        media?.attach(localView)
    }

    func s14Detach() {
        media?.detach()
    }

    func s15Start() -> Task<Void, Never> {
        let media = self.media
        return Task {
            try? await media?.start()
        }
    }

    func s16Receivers() {
        config.videoReceiverInitialCount = 9
        config.videoReceiverMaximumCount = 20
        config.videoReceiverGrowthRate = 1
    }

    func s18CreateRoom(_ delegate: RoomDelegate) {
        let config = Config()
        let room = ConnectLive.createRoom(config: config, delegate: delegate)
        self.room = room
    }

    func s19Connect() {
        room?.connect(roomId: "a-room")
    }

    func s20Publish() {
        guard let room = self.room else { return }
        do {
            try room.publish(media)
        } catch {
            lines.append("not published")
        }
    }

    func s21Participants() -> [String] {
        guard let room = self.room else { return [] }
        let localParticipant = room.localParticipant
        let remoteParticipants = room.remoteParticipants
        let videoOccupants = room.getVideoOccupants()
        let audioOccupants = room.getAudioOccupants()
        return [localParticipant.id] + remoteParticipants.keys + videoOccupants + audioOccupants
    }

    func s22LocalStreams() -> [String] {
        guard let media = self.media, let room = self.room else { return [] }
        let own: [LocalVideo] = [media.video]
        let ownAudio: [LocalAudio] = [media.audio]
        let participant = room.localParticipant
        let video = participant.videos.first?.value
        let audio = participant.audios.first?.value
        let camera = participant.videos.values.first { $0.extraValue == "camera" }
        let voice = participant.audios.values.first { $0.extraValue == "voice" }
        return own.map(\.extraValue) + ownAudio.map(\.extraValue)
            + [video?.owner, audio?.owner, camera?.owner, voice?.owner].compactMap { $0 }
    }

    func s23RemoteStreams() -> [Int] {
        let participant = room?.remoteParticipants[participantId]
        let video = participant?.videos.first?.value
        let audio = participant?.audios.first?.value
        let camera = participant?.videos.values.first { $0.extraValue == "camera" }
        let voice = participant?.audios.values.first { $0.extraValue == "voice" }
        return [video?.id, audio?.id, camera?.id, voice?.id].compactMap { $0 }
    }

    func s24Subscribe(to videoId: Int) async {
        guard let room = self.room else { return }
        guard let participant = room.remoteParticipants[participantId] else { return }
        guard let remoteVideo = participant.videos[videoId] else { return }

        if remoteVideo.isSubscribed {
            lines.append("subscribed already")
            return
        }

        let result = await room.subscribe(videoId: remoteVideo.id)
        switch result {
        case .success():
            lines.append("subscribed")

        case .failure(let error):
            if case let ConnectLiveError.error(code, message) = error {
                lines.append("subscribe \(code) \(message.isEmpty)")
            } else {
                lines.append(error.localizedDescription)
            }
        }
    }

    func s25AttachRemote(_ renderView: RenderView) {
        guard let room = self.room else { return }
        guard let participant = room.remoteParticipants[participantId] else { return }
        guard let remoteVideo = participant.videos[videoId] else { return }
        remoteVideo.attach(renderView.uiView)
    }

    func s26Unsubscribe(from videoId: Int) async {
        guard let room = self.room else { return }
        guard let participant = room.remoteParticipants[participantId] else { return }
        guard let remoteVideo = participant.videos[videoId] else { return }

        if !remoteVideo.isSubscribed {
            lines.append("not subscribed")
            return
        }

        let result = await room.unsubscribe(videoId: remoteVideo.id)
        switch result {
        case .success():
            lines.append("unsubscribed")

        case .failure(let error):
            if case let ConnectLiveError.error(code, message) = error {
                lines.append("unsubscribe \(code) \(message.isEmpty)")
            } else {
                lines.append(error.localizedDescription)
            }
        }
    }

    func s27DetachRemote() {
        guard let room = self.room else { return }
        guard let participant = room.remoteParticipants[participantId] else { return }
        guard let remoteVideo = participant.videos[videoId] else { return }
        remoteVideo.detach()
    }

    /// The attribute silences the warning that names the present form.
    @available(*, deprecated)
    func s28Message(_ message: String) -> Task<Void, Never> {
        Task { [weak self] in
            guard let self = self, let room = self.room else { return }
            let result = await room.sendUserMessage(participantIds: [], message: message)
            switch result {
            case .success():
                self.lines.append("sent")
            case .failure(let error):
                self.lines.append("not sent: \(error.localizedDescription)")
            }
        }
    }

    func s29Mute() {
        room?.setMuted(true)
    }

    @available(*, deprecated)
    func s30Statistics(_ room: Room) {
        room.getLocalStatsReport() { [weak self] results in
            let objects: [String: Statistics] = results
            self?.lines.append("\(objects.count) local objects")
        }

        room.getRemoteStatsReport() { [weak self] results in
            let objects: [String: Statistics] = results
            self?.lines.append("\(objects.count) remote objects")
        }
    }

    func s31Disconnect() {
        room?.disconnect()
    }

    func s32SignOut() {
        ConnectLive.signOut()
    }

    /// The code of a failure of `publish`.
    func s42Error() -> Int? {
        guard let room = self.room else { return nil }
        do {
            try room.publish(media)
        } catch {
            if case let ConnectLiveError.error(code, message) = error {
                lines.append(message)
                return code
            } else {
                lines.append("another error")
            }
        }
        return nil
    }
}

/// Samples 33 to 41: the events of a room, as methods of a class of the main actor.
extension Guide: @preconcurrency RoomDelegate {
    func onConnected(participantIds: [String]) {
        self.participantIds = participantIds.sorted(by: <)
    }

    func onDisconnected(reason: DisconnectReason) {
        self.participantIds.removeAll()
        switch reason {
        case .disconnected:
            lines.append(latestErrorCode != 0 ? "ended by \(latestErrorCode)" : "left")
            break

        case .destroyed:
            lines.append("destroyed")
            break

        case .kicked:
            lines.append("kicked")
            break
        }
    }

    func onError(code: Int, message: String, isCritical: Bool) {
        if isCritical {
            self.latestErrorCode = code
            self.latestErrorMessage = message
        } else {
            lines.append("error \(code)")
        }
    }

    func onParticipantEntered(remoteParticipant: RemoteParticipant) {
        let pid = remoteParticipant.id
        var slice = participantIds[...]
        while !slice.isEmpty {
            let middle = slice.index(slice.startIndex, offsetBy: slice.count / 2)
            if pid < slice[middle] {
                slice = slice[..<middle]
            } else {
                slice = slice[slice.index(after: middle)...]
            }
        }
        self.participantIds.insert(pid, at: slice.startIndex)
    }

    func onParticipantLeft(remoteParticipant: RemoteParticipant) {
        if let index = participantIds.firstIndex(where: { $0 == remoteParticipant.id }) {
            participantIds.remove(at: index)
        }
    }

    func onRemoteVideoPublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {
        lines.append("video of \(remoteParticipant.id)")
    }

    func onRemoteVideoUnpublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {
        lines.append("no video of \(remoteParticipant.id)")
    }

    func onRemoteAudioSubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
        lines.append("hears \(remoteParticipant.id)")
    }

    func onRemoteAudioUnsubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
        lines.append("hears \(remoteParticipant.id) no longer")
    }
}

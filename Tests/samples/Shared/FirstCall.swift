import ConnectLiveSDK

// Of docs/coming-from-ios.md.

/// A call: publishes camera and microphone, and has a view for each video of the others.
@MainActor
final class CallModel {
    private(set) var views: [Int: UIRenderView] = [:]
    private(set) var messages: [String] = []
    private let media: LocalMedia?
    private var room: Room?

    init(config: Config) {
        media = ConnectLive.createLocalMedia(config: config)
    }

    func join(_ name: String) async throws {
        let (code, message) = await ConnectLive.signIn(serviceId: "", serviceSecret: "")
        guard code == 0 else { throw ConnectLiveError.error(code, message) }
        let room = ConnectLive.createRoom(config: Config(), delegate: self)
        self.room = room
        room.connect(roomId: name)
        try room.publish(media)
    }

    func leave() {
        room?.disconnect()
    }

    private func show(_ video: RemoteVideo) {
        let view = UIRenderView()
        views[video.id] = view
        video.attach(view)
        room?.subscribe(videoIds: [video.id])
    }
}

extension CallModel: @MainActor RoomDelegate {
    func onConnected(participantIds: [String]) {
        room?.remoteParticipants.values.flatMap(\.videos.values).forEach(show)
    }

    func onRemoteVideoPublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {
        show(remoteVideo)
    }

    func onRemoteVideoUnpublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {
        views[remoteVideo.id] = nil
    }

    func onUserMessage(senderId: String, message: String, type: String) {
        messages.append("\(senderId): \(message)")
    }

    func onDisconnected(reason: DisconnectReason) {
        (room, views) = (nil, [:])
    }

    func onError(code: Int, message: String, isCritical: Bool) { print(message) }

    func onParticipantEntered(remoteParticipant: RemoteParticipant) {}

    func onParticipantLeft(remoteParticipant: RemoteParticipant) {}
}

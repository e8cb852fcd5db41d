import ConnectLiveSDK

final class Host: RoomDelegate {
    func onConnected(participantIds: [String]) { print("in the room with", participantIds.count - 1, "others") }
    func onDisconnected(reason: DisconnectReason) { print("left:", reason) }
    func onError(code: Int, message: String, isCritical: Bool) { print(message) }
    func onParticipantEntered(remoteParticipant: any RemoteParticipant) { print(remoteParticipant.id, "joined") }
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) { print(remoteParticipant.id, "left") }
}
let host = Host()
let (code, message) = await ConnectLive.signIn(serviceId: "", serviceSecret: "")  // credentials of `connectlive serve`
guard code == 0 else { throw ConnectLiveError.error(code, message) }
let room = ConnectLive.createRoom(config: Config(), delegate: host)
room.connect(roomId: "kitchen")
try room.publish(ConnectLive.createLocalMedia(config: Config()))  // the first camera, 640x480 at 20 frames/s
try await Task.sleep(for: .seconds(60))

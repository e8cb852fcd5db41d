import ConnectLiveSDK

final class Watcher: RoomDelegate {
    func onConnected(participantIds: [String]) { print("in the room with", participantIds) }
    func onDisconnected(reason: DisconnectReason) { print("left:", reason) }
    func onError(code: Int, message: String, isCritical: Bool) { print(message) }
    func onParticipantEntered(remoteParticipant: RemoteParticipant) { print(remoteParticipant.id, "came") }
    func onParticipantLeft(remoteParticipant: RemoteParticipant) { print(remoteParticipant.id, "went") }
}
let watcher = Watcher()
let (code, message) = await ConnectLive.signIn(serviceId: "", serviceSecret: "")  // found where `serve` left them
guard code == 0 else { fatalError(message) }
let room = ConnectLive.createRoom(config: Config(), delegate: watcher)
room.connect(roomId: "kitchen")
try room.publish(ConnectLive.createLocalMedia(config: Config()))  // the camera, 640x480 at 20 frames/s
try await Task.sleep(for: .seconds(60))

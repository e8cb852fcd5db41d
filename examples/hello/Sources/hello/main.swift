// Publishes a file into a room and renders the other participants: hello FILE [ROOM] [SECONDS]
// Start `connectlive serve` on the same machine first.
import ConnectLiveSDK
import Foundation
import Synchronization

let framesShown = Mutex(0)

final class Hello: RoomDelegate {
    var room: (any Room)?

    func onConnected(participantIds: [String]) {
        print("connected; others here: \(participantIds.count - 1)")
        for participant in room?.remoteParticipants ?? [:] { participant.value.videos.values.forEach(show) }
    }
    func onRemoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        show(remoteVideo)
    }

    private func show(_ video: any RemoteVideo) {
        // With a display, a window shows the frames. They are counted in any case.
        let view = (try? FrameView(windowTitle: video.owner)) ?? FrameView()
        view.onFrame = { frame in framesShown.withLock { $0 += 1 } }
        video.attach(view)
        room?.subscribe(videoIds: [video.id])
    }

    func onParticipantEntered(remoteParticipant: any RemoteParticipant) { print("\(remoteParticipant.id) entered") }
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) { print("\(remoteParticipant.id) left") }
    func onError(code: Int, message: String, isCritical: Bool) {
        print("error \(code): \(message)")
        if isCritical { exit(1) }
    }
    func onDisconnected(reason: DisconnectReason) {
        print("disconnected")
        exit(reason == .disconnected ? 0 : 1)
    }
}

let arguments = CommandLine.arguments + ["", ""]
var config = Config()
config.mediaOptions.source = .file
config.mediaOptions.fileName = arguments[1]
guard arguments[1] != "", let media = ConnectLive.createLocalMedia(config: config) else {
    print("usage: hello FILE [ROOM] [SECONDS]")
    exit(2)
}

// Empty credentials: those of the environment variables, or of this user's `connectlive serve`.
let (code, message) = await ConnectLive.signIn(serviceId: "", serviceSecret: "")
guard code == 0 else {
    print("error \(code): \(message)")
    exit(1)
}
let hello = Hello()
let room = ConnectLive.createRoom(config: config, delegate: hello)
hello.room = room
room.connect(roomId: arguments[2].isEmpty ? "hello" : arguments[2])
// An uncaught error would crash the program.
do { try room.publish(media) } catch { print(error) }
for _ in 0..<max(0, Int(arguments[3]) ?? .max) where room.status != .disconnected {
    try await Task.sleep(for: .seconds(1))
    print("frames shown: \(framesShown.withLock { $0 })")
}
room.disconnect()
// The delegate ends the program.
try await Task.sleep(for: .seconds(10))

import ConnectLiveSDK
import Dispatch
import Testing

// The code of the articles in Sources/SDK/ConnectLiveSDK/ConnectLiveSDK.docc, which quote it from here.

/// Joins a room with camera and microphone, and shows each video of the others in a window.
@MainActor
final class VideoCall {
    private(set) var room: (any Room)?
    private(set) var views: [Int: UIRenderView] = [:]
    private(set) var messages: [String] = []

    func signIn() async -> Bool {
        let (code, message) = await ConnectLive.signIn(serviceId: "", serviceSecret: "")
        if code != 0 { messages.append(message) }
        return code == 0
    }

    func join(_ name: String) throws {
        let room = ConnectLive.createRoom(config: Config(), delegate: self)
        self.room = room
        try room.publish(ConnectLive.createLocalMedia(config: Config()))
        room.connect(roomId: name)
    }

    func leave() { room?.disconnect() }

    private func show(_ video: any RemoteVideo) {
        let view = (try? UIRenderView(windowTitle: video.owner)) ?? UIRenderView()
        views[video.id] = view
        video.attach(view)
        room?.subscribe(videoId: video.id) { [weak self] result in
            if case .failure(let error) = result { self?.messages.append(error.localizedDescription) }
        }
    }
}

extension VideoCall: @MainActor RoomDelegate {
    func onConnected(participantIds: [String]) {
        guard let room else { return }
        for participant in room.remoteParticipants.values {
            for video in participant.videos.values { show(video) }
        }
    }

    func onRemoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        show(remoteVideo)
    }

    func onRemoteVideoUnpublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        views[remoteVideo.id] = nil
    }

    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}

    func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}

    func onError(code: Int, message: String, isCritical: Bool) { messages.append(message) }

    func onDisconnected(reason: DisconnectReason) {
        (room, views) = (nil, [:])
        ConnectLive.signOut()
    }
}

/// Signs in with a token that the application got from a server of its own.
func signIn(withToken token: String) async throws {
    let (code, message) = await ConnectLive.signIn(
        serviceId: "kitchen-radio", token: token, endpoint: "https://rooms.example.org")
    guard code == 0 else { throw ConnectLiveError.error(code, message) }
}

/// The front camera at 1280x720 and 30 frames per second, in three sizes.
func cameraInThreeSizes() -> (any LocalMedia)? {
    var config = Config()
    config.mediaOptions.position = .front
    config.mediaOptions.isMirror = false
    (config.mediaOptions.videoWidth, config.mediaOptions.videoHeight) = (1280, 720)
    config.mediaOptions.videoFPS = 30
    config.mediaOptions.videoLayers = 3
    config.mediaOptions.videoExtraValue = "camera"
    return ConnectLive.createLocalMedia(config: config)
}

/// A film with its own sound, which plays again and again.
func film(_ path: String) -> (any LocalMedia)? {
    var config = Config()
    config.mediaOptions.source = .file
    config.mediaOptions.fileName = path
    return ConnectLive.createLocalMedia(config: config)
}

/// Turns to the other camera while the video runs. The sentence is nil on success.
func turn(_ media: any LocalMedia) async -> String? {
    let position: CameraPosition = media.position == .front ? .back : .front
    do {
        try await media.switchCamera(position: position, isMirror: position == .front)
        return nil
    } catch {
        return error.localizedDescription
    }
}

/// Turns the microphone off or on. The others get `onRemoteAudioStateChanged`.
func setMicrophone(of media: any LocalMedia, on isOn: Bool) {
    media.audio.active = isOn
}

/// Subscribes to the wanted videos and to no others. Returns those for which no receiver was free.
func watch(_ wanted: Set<Int>, in room: any Room) async -> Set<Int> {
    let videos = room.remoteParticipants.values.flatMap { $0.videos.values }
    let watched = Set(videos.filter { $0.isSubscribed }.map { $0.id })
    for video in watched.subtracting(wanted) { _ = await room.unsubscribe(videoId: video) }
    var refused: Set<Int> = []
    for video in wanted.subtracting(watched) {
        guard case .failure(let error) = await room.subscribe(videoId: video) else { continue }
        if case ConnectLiveError.error(1322, _) = error { refused.insert(video) }
    }
    return refused
}

/// The screen that a participant shares, if it does.
func screen(of participant: String, in room: any Room) -> (any RemoteVideo)? {
    room.remoteParticipants[participant]?.videos.values.first { $0.extraValue == "screen" }
}

/// Receives a small video in low quality, and a hidden one not at all.
func fit(_ video: any RemoteVideo, isLarge: Bool, isHidden: Bool) throws {
    try video.setPaused(isHidden)
    if video.profile != .empty { try video.setProfile(isLarge ? .high : .low) }
}

/// Plays a participant at half the amplitude, and silences another one.
func balance(quiet: any RemoteParticipant, silent: any RemoteParticipant) {
    for audio in quiet.audios.values { audio.volume = 0.5 }
    for audio in silent.audios.values { audio.isMuted = true }
}

/// Sends a line to everyone else in the room. The sentence is nil on success.
func say(_ line: String, in room: any Room) async -> String? {
    switch await room.sendUserMessage(targets: [], message: line, type: "chat") {
    case .success: nil
    case .failure(let error): error.localizedDescription
    }
}

/// Publishes media, and returns the number and the sentence of an error.
func publish(_ media: (any LocalMedia)?, in room: any Room) -> (Int, String)? {
    do {
        try room.publish(media)
        return nil
    } catch {
        guard case ConnectLiveError.error(let code, let message) = error else { return (0, "\(error)") }
        return (code, message)
    }
}

/// A line of text about the connection.
@MainActor
final class ConnectionLine {
    private(set) var text = ""
    private var cause: String?
}

extension ConnectionLine: @MainActor RoomDelegate {
    func onConnecting(progress: Float) { text = "connecting: \(Int(progress)) %" }
    func onConnected(participantIds: [String]) { text = "connected" }
    func onReconnecting(attempt: Int, error: ConnectLiveError) { text = "reconnecting, attempt \(attempt)" }
    func onReconnected(wasResumed: Bool, seconds: Double) { text = "connected" }
    func onMediaInterrupted(isOutgoing: Bool, seconds: Double) { text = "no media for \(Int(seconds)) s" }
    func onMediaRestored(seconds: Double) { text = "connected" }

    func onError(code: Int, message: String, isCritical: Bool) {
        if isCritical { cause = message }
    }

    func onDisconnected(reason: DisconnectReason) {
        switch reason {
        case .disconnected: text = cause ?? "left"
        case .destroyed: text = "the room has ended"
        case .kicked: text = "removed by the administrator"
        }
    }

    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
}

/// Reports who is heard, at most a few times a second.
@MainActor
final class Speakers {
    private(set) var ids: Set<String> = []
    private(set) var warnings: [String] = []
}

extension Speakers: @MainActor RoomDelegate {
    func onRemoteAudioSubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {
        ids.insert(remoteParticipant.id)
    }

    func onRemoteAudioUnsubscribed(remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio) {
        ids.remove(remoteParticipant.id)
    }

    func onRemoteVideoQualityChanged(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        if let limitation = remoteVideo.limitation { warnings.append("\(limitation)") }
    }

    func onStat(stat: QualityStat) {
        guard let received = stat.remoteStat, (received.currentRTT ?? 0) > 0.4 else { return }
        warnings.append("the network is slow: \(received.packetsReceivedPerInterval) packets arrived")
    }

    func onConnected(participantIds: [String]) {}
    func onDisconnected(reason: DisconnectReason) { ids.removeAll() }
    func onError(code: Int, message: String, isCritical: Bool) {}
    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
    func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
}

/// Passes callbacks to a queue of the program, which needs no main loop then.
func useQueueOfTheProgram() {
    ConnectLive.callbackQueue = DispatchQueue(label: "org.example.rooms")
}

/// A view that measures the brightness of each frame, without a window.
func brightness(of video: any RemoteVideo, report: @escaping @Sendable (UInt8) -> Void) -> FrameView {
    let view = FrameView { frame in
        let middle = frame.withPlane(.luma) { bytes, stride in
            bytes.unsafeLoad(fromByteOffset: frame.height / 2 * stride + frame.width / 2, as: UInt8.self)
        }
        report(middle)
    }
    video.attach(view)
    return view
}

/// The code of the articles acts without a server. The language mode of a client's package compiles the rest.
@MainActor @Suite(.timeLimit(.minutes(1))) struct ArticleTests {
    private func wait(_ condition: () -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(20)
        while !condition() {
            try #require(ContinuousClock.now < end, "the callbacks came")
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    @Test func `a call reports why a room cannot be joined, and forgets the room`() async throws {
        let call = VideoCall()
        try call.join("not a name")
        try await wait { call.room == nil }
        #expect(call.messages.count == 1 && call.views.isEmpty)
    }

    @Test func `a line of text follows the connection to its end`() async throws {
        let line = ConnectionLine()
        let room = ConnectLive.createRoom(config: nil, delegate: line)
        room.connect(roomId: "not a name")
        try await wait { !line.text.isEmpty }
        #expect(line.text.contains("not-a-name"))
        #expect(publish(nil, in: room)?.0 == 1311)
        #expect(await say("hello", in: room) != nil)
        #expect(await watch([7], in: room).isEmpty)
        #expect(screen(of: "nobody", in: room) == nil)
    }

    @Test func `media has its options, and a film that is missing does not start`() async throws {
        let media = try #require(cameraInThreeSizes())
        #expect(media.video.extraValue == "camera" && media.position == .front)
        setMicrophone(of: media, on: false)
        #expect(!media.audio.active)
        let loop = try #require(film("/nonexistent/film.mp4"))
        await #expect(throws: ConnectLiveError.self) { try await loop.start() }
    }
}

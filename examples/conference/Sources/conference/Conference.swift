import ConnectLiveSDK
import Foundation

/// A call with its lobby. It knows neither terminal nor window: as in an application for iOS, screens show what it has.
@MainActor final class Conference {
    enum Stage { case lobby, joining, inRoom, ended }

    /// A video, or a participant without one.
    struct Tile {
        var name: String
        /// Nil while the camera is off.
        var view: UIRenderView?
        var isMuted = false
        var isSpeaking = false
    }

    /// A camera or microphone to choose.
    struct Device: Sendable {
        var label: String
        /// Nil for the camera of the place `front`.
        var identifier: String?
    }

    /// The cameras or microphones, and the choice among them.
    struct Choice {
        var devices: [Device] = []
        /// The place of the one that the keys have reached.
        var index = 0
        /// The place of the one that the media uses.
        var inUse = 0
    }

    var roomName: String
    var name: String
    private(set) var stage = Stage.lobby
    private(set) var chat: [String] = []
    /// The latest news, in a sentence.
    private(set) var notice = ""
    private(set) var cameras = Choice()
    private(set) var microphones = Choice()
    private(set) var isSharing = false

    let usesTestPattern: Bool
    private var media: (any LocalMedia)?
    private var room: (any Room)?
    private let ownView = UIRenderView()
    private var views: [Int: UIRenderView] = [:]
    private var levels: [String: Int] = [:]
    private var isEnding = false
    /// Counts the calls of `join`, and what ends them. One that waits while it changes does not go on.
    private var joins = 0
    private lazy var preparation = Task { await prepare() }

    init(roomName: String, name: String, usesTestPattern: Bool) {
        (self.roomName, self.name, self.usesTestPattern) = (roomName, name, usesTestPattern)
    }

    var isCameraOn: Bool { media?.video.active ?? false && (usesTestPattern || !cameras.devices.isEmpty) }
    var isMicrophoneOn: Bool { media?.audio.active ?? false && (usesTestPattern || !microphones.devices.isEmpty) }

    func say(_ text: String) { notice = text }

    // MARK: - The lobby

    /// Looks for devices, and shows the camera in the preview.
    func open() { _ = preparation }

    private func prepare() async {
        if !usesTestPattern {
            say("Looking for cameras and microphones…")
            let (found, heard) = await Task.detached { (Devices.cameras(), Devices.sound().microphones) }.value
            cameras.devices = found.map { Device(label: $0.name, identifier: $0.path) }
            // The one that media begins with: `connectlive devices bind front` may name any of them.
            if found.count > 1 { cameras.devices.insert(Device(label: "front", identifier: nil), at: 0) }
            microphones.devices = heard.map { Device(label: $0.name, identifier: $0.lastingName) }
            // The one that media uses if none is chosen.
            microphones.index = heard.firstIndex(where: \.isDefault) ?? 0
            microphones.inUse = microphones.index
        }
        var config = Config()
        config.mediaOptions.usesTestPattern = usesTestPattern
        config.mediaOptions.hasVideo = usesTestPattern || !cameras.devices.isEmpty
        config.mediaOptions.hasAudio = usesTestPattern || !microphones.devices.isEmpty
        config.mediaOptions.isMirror = false
        media = ConnectLive.createLocalMedia(config: config)
        media?.attach(ownView)
        say(media == nil ? "No camera and no microphone were found. The others see your id only." : "")
        do { try await media?.start() } catch { say(error.localizedDescription) }
    }

    func chooseCamera(step: Int) { choose(\.cameras, step) { $0.cameraDevice = $1 } }

    func chooseMicrophone(step: Int) {
        choose(\.microphones, step) { if let identifier = $1 { $0.microphone = .device(identifier) } }
    }

    private func choose(
        _ choice: ReferenceWritableKeyPath<Conference, Choice>, _ step: Int,
        _ change: @escaping @Sendable (inout LocalMediaOptions, String?) -> Void
    ) {
        let devices = self[keyPath: choice].devices
        guard let media, devices.count > 1 else { return say("There is no other device.") }
        let index = (self[keyPath: choice].index + step + devices.count) % devices.count
        let device = devices[index]
        // At once, so that the next key goes on from here.
        self[keyPath: choice].index = index
        Task {
            do {
                try await media.update { change(&$0, device.identifier) }
                self[keyPath: choice].inUse = index
                say("Now: \(device.label)")
            } catch {
                // Unless another key has gone on.
                if self[keyPath: choice].index == index { self[keyPath: choice].index = self[keyPath: choice].inUse }
                say(error.localizedDescription)
            }
        }
    }

    /// Signs in, and enters the room with the media of the preview.
    func join() async {
        guard stage == .lobby else { return }
        stage = .joining
        joins += 1
        let own = joins
        await preparation.value
        guard own == joins else { return }
        // Empty credentials: those of the environment variables, or of this user's `connectlive serve`.
        let (code, message) = await ConnectLive.signIn(serviceId: "", serviceSecret: "")
        guard own == joins else { return }
        guard code == 0 else { return left(saying: message) }
        media?.video.extraValue = name
        media?.audio.extraValue = name
        let room = ConnectLive.createRoom(config: Config(), delegate: self)
        self.room = room
        room.connect(roomId: roomName)
        do { if let media { try room.publish(media) } } catch { say(error.localizedDescription) }
    }

    // MARK: - The room

    func toggleMicrophone() {
        guard let media, usesTestPattern || !microphones.devices.isEmpty else { return say("There is no microphone.") }
        media.audio.active.toggle()
    }

    func toggleCamera() {
        guard let media, usesTestPattern || !cameras.devices.isEmpty else { return say("There is no camera.") }
        media.video.active.toggle()
    }

    func send(_ text: String) async {
        guard let room else { return }
        switch await room.sendUserMessage(targets: [], message: text, type: "chat") {
        case .success: note("\(name): \(text)")
        case .failure(let error): say(error.localizedDescription)
        }
    }

    private func note(_ line: String) { chat = (chat + [line]).suffix(Self.chatCapacity) }

    private static let chatCapacity = 200

    /// Shares the screen that examples/screen-extension captures, or ends that.
    func toggleScreenShare() {
        guard let room else { return }
        if isSharing {
            room.stopScreenShare(isLeftRoom: false)
            isSharing = false
            return say("The screen is shared no longer.")
        }
        do {
            let group = "conference-\(ProcessInfo.processInfo.processIdentifier)"
            try room.requestScreenShare(appGroup: group, extensionName: "screen-extension") { [weak self] status in
                self?.isSharing = status != .broadcastClosed
                if status == .broadcastStarted { self?.say("The others see the screen.") }
            }
            isSharing = true
        } catch {
            say(error.localizedDescription)
        }
    }

    /// Leaves the room, or cancels joining.
    func leave() {
        guard let room else {
            if stage == .joining { left(saying: "") }
            return
        }
        room.disconnect()
        say("Leaving…")
    }

    /// Leaves the room if there is one, and frees camera and microphone.
    func end() {
        isEnding = true
        if room != nil || stage == .joining { return leave() }
        Task {
            await media?.stop()
            stage = .ended
        }
    }

    private func left(saying text: String) {
        room = nil
        stage = .lobby
        joins += 1
        (isSharing, chat, views, levels) = (false, [], [:], [:])
        say(text)
        if isEnding { end() }
    }

    // MARK: - What screens show

    /// One's own tile, then those of the others.
    var tiles: [Tile] {
        var own = Tile(name: "\(name) (you)", view: isCameraOn ? ownView : nil, isMuted: !isMicrophoneOn)
        own.isSpeaking = !own.isMuted && Self.isSpeech(media?.audioLevel)
        guard stage == .inRoom, let room else { return [own] }
        return [own] + room.remoteParticipants.values.sorted { $0.id < $1.id }.flatMap { tiles(of: $0) }
    }

    private func tiles(of participant: any RemoteParticipant) -> [Tile] {
        let videos = participant.videos.values.sorted { $0.id < $1.id }
        let cameras = videos.filter { $0.extraValue != "screen" }
        let isMuted = !participant.audios.values.contains { $0.active }
        let person = Tile(
            name: nameOf(participant), isMuted: isMuted,
            isSpeaking: !isMuted && Self.isSpeech(levels[participant.id]))
        let screens = videos.filter { $0.extraValue == "screen" }.map {
            Tile(name: "\(person.name): screen", view: views[$0.id])
        }
        let shown = cameras.map { camera in
            var tile = person
            tile.view = camera.active ? views[camera.id] : nil
            return tile
        }
        return (shown.isEmpty ? [person] : shown) + screens
    }

    /// The name that this application writes beside its streams. Other applications may write something else.
    private func nameOf(_ participant: any RemoteParticipant) -> String {
        let texts = participant.videos.values.map(\.extraValue) + participant.audios.values.map(\.extraValue)
        return texts.first { !["", "camera", "microphone", "screen"].contains($0) } ?? participant.id
    }

    private static func isSpeech(_ level: Int?) -> Bool { level ?? 0 >= 40 }
}

extension Conference: @MainActor RoomDelegate {
    func onConnected(participantIds: [String]) {
        stage = .inRoom
        say("")
        for participant in room?.remoteParticipants.values ?? [:].values {
            for video in participant.videos.values { show(video) }
        }
        // The levels of the participants that are heard, a few times a second.
        Task { [weak self, room] in
            while let room, self?.room === room {
                self?.levels = await room.getAudioLevels()
                try await Task.sleep(for: .milliseconds(250))
            }
        }
    }

    func onDisconnected(reason: DisconnectReason) {
        switch reason {
        case .disconnected: left(saying: room?.disconnectError?.localizedDescription ?? "")
        case .destroyed: left(saying: "The room has been closed.")
        case .kicked: left(saying: "You were removed from the room.")
        }
    }

    func onError(code: Int, message: String, isCritical: Bool) { say(message) }

    func onReconnecting(attempt: Int, error: ConnectLiveError) { say("The connection is lost. Attempt \(attempt)…") }

    func onReconnected(wasResumed: Bool, seconds: Double) { say("The connection is back.") }

    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}

    func onParticipantLeft(remoteParticipant: any RemoteParticipant) {
        say("\(nameOf(remoteParticipant)) has left.")
    }

    func onRemoteVideoPublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        show(remoteVideo)
    }

    func onRemoteVideoUnpublished(remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo) {
        views[remoteVideo.id] = nil
    }

    func onUserMessage(senderId: String, message: String, type: String) {
        let sender = room?.remoteParticipants[senderId].map { nameOf($0) }
        note("\(sender ?? senderId): \(message)")
    }

    func onLocalVideoChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent) { say("camera", event) }

    func onLocalAudioChanged(localMedia: (any LocalMedia)?, event: LocalDeviceEvent) { say("microphone", event) }

    private func say(_ device: String, _ event: LocalDeviceEvent) {
        switch event {
        case .waiting(let error), .lost(let error): say(error.localizedDescription)
        case .returned: say("The \(device) is back.")
        case .failedOver(let other): say("Another \(device) has taken over: \(other)")
        }
    }

    private func show(_ video: any RemoteVideo) {
        let view = UIRenderView()
        views[video.id] = view
        video.attach(view)
        room?.subscribe(videoIds: [video.id])
    }
}

import ConnectLiveSDK
import Foundation

/// The calls and declarations of the original SDK's README, by their numbers in docs/samples.md. A constant with a type
/// stands for a printed declaration.
@MainActor
final class Readme: SampleApp {
    typealias Answer = (Result<Void, Error>) -> Void

    /// The block about permissions, before the numbered ones.
    func s0Access(to type: AVMediaType) async -> Bool {
        await AVCaptureDevice.requestAccess(for: type)
    }

    func s0Status(of type: AVMediaType) -> AVAuthorizationStatus {
        AVCaptureDevice.authorizationStatus(for: type)
    }

    /// With the callback that 3 declares.
    func s1SignIn(serviceId: String, serviceSecret: String, _ callback: @escaping ProvisionCallbackOfReadme) {
        ConnectLive.signIn(serviceId: serviceId, serviceSecret: serviceSecret, completion: callback)
    }

    func s2SignOut() {
        ConnectLive.signOut()
    }

    func s4SignIn() {
        ConnectLive.signIn(serviceId: "serviceId", serviceSecret: "serviceSecret") { [weak self] code, message in
            if code == 0 {
                self?.lines.append("in")
            } else {
                self?.lines.append("not in")
            }
        }
    }

    /// With the parameters of version 2.0.6.
    @available(*, deprecated)
    func s5AudioSession(_ delegate: AudioSessionDelegate) {
        let category: AVAudioSession.Category = .playAndRecord
        let mode: AVAudioSession.Mode = .videoChat
        let options: AVAudioSession.CategoryOptions = [.mixWithOthers, .duckOthers]
        let ioBufferDuration: TimeInterval = 0.06
        ConnectLive.setAudioSessionConfiguration(
            category: category, mode: mode, options: options, ioBufferDuration: ioBufferDuration, delegate: delegate)
    }

    /// Without the parameters that have a default.
    func s5AudioSessionAlone() {
        ConnectLive.setAudioSessionConfiguration(category: .playAndRecord, mode: .videoChat, options: [.mixWithOthers])
    }

    func s6AudioDelegate() -> AudioSessionDelegate { AudioDelegateOfReadme() }

    func s7And11Config() -> [Int] {
        let config = Config()
        let options: LocalMediaOptions = config.mediaOptions
        return [
            config.videoReceiverInitialCount, config.videoReceiverMaximumCount, config.videoReceiverGrowthRate,
            options.videoWidth,
        ]
    }

    /// The names are those of version 2.0.6.
    @available(*, deprecated)
    func s8Options() -> LocalMediaOptions {
        var options = Config().mediaOptions
        let position: AVCaptureDevice.Position = .front
        options.source = .camera
        (options.hasAudio, options.hasVideo, options.video, options.audio) = (true, true, true, true)
        options.extraValue = "camera"
        let rotationType: CameraRotationType = .notAvailable
        options.rotationType = rotationType
        options.position = position
        options.audioType = .voice
        options.autoGain = false
        options.isMirror = true
        options.fileName = "sample.mov"
        options.cameraCapturewWidth = 640
        options.cameraCaptureHeight = 480
        return options
    }

    func s9CapturerTypes() -> [CapturerType] { [.camera, .bypass, .file] }

    func s10AudioTypes() -> [String] {
        let types: [AudioProcessingType] = [.voice, .music]
        return types.map(\.rawValue)
    }

    @available(*, deprecated)
    func s13CreateMedia(_ options: LocalMediaOptions) -> LocalMedia? {
        ConnectLive.createLocalMedia(options: options)
    }

    /// 12 declares the members that 14 to 19 print again, and the level.
    func s12Level(_ media: LocalMedia) -> Int {
        let level: Int = media.audioLevel
        return level
    }

    func s14Streams(_ media: LocalMedia) -> [String] {
        let video: LocalVideo = media.video
        let audio: LocalAudio = media.audio
        return [video.extraValue, audio.extraValue]
    }

    func s15Start(_ media: LocalMedia) {
        media.start { [weak self] error in
            self?.lines.append(error == nil ? "started" : "not started")
        }
    }

    func s15StartAndWait(_ media: LocalMedia) async throws {
        try await media.start()
    }

    @available(*, deprecated)
    func s16Stop(_ media: LocalMedia) {
        media.stop()
    }

    func s17Turn(_ media: LocalMedia) -> AVCaptureDevice.Position {
        let position: AVCaptureDevice.Position = media.position
        media.position = position == .back ? .front : .back
        return position
    }

    func s18IsMirror(_ media: LocalMedia) -> Bool {
        let isMirror: Bool = media.isMirror
        return isMirror
    }

    func s19SwitchCamera(_ media: LocalMedia) {
        media.switchCamera(position: .back, isMirror: false) { [weak self] error in
            self?.lines.append(error == nil ? "switched" : "not switched")
        }
    }

    func s19SwitchCameraAndWait(_ media: LocalMedia) async throws {
        try await media.switchCamera(position: .front, isMirror: true)
    }

    @available(*, deprecated)
    func s20Example() -> (media: LocalMedia?, task: Task<Void, Never>) {
        var config = Config()
        config.mediaOptions.audio = true
        config.mediaOptions.video = true
        let media = ConnectLive.createLocalMedia(options: config.mediaOptions)
        let task = Task {
            try? await media?.switchCamera(position: .back, isMirror: true)
            return
        }
        return (media, task)
    }

    func s21CreateRoom(_ delegate: RoomDelegate) {
        let room: Room = ConnectLive.createRoom(config: config, delegate: delegate)
        self.room = room
    }

    func s22Publish() {
        try? room?.publish(media)
    }

    func s23Connect() {
        room?.connect(roomId: "a-room")
    }

    func s24Disconnect() {
        room?.disconnect()
    }

    func s25Participants(_ room: Room) -> (own: String, others: [String], videos: [String], audios: [String]) {
        let localParticipant: LocalParticipant = room.localParticipant
        let remoteParticipants: [String: RemoteParticipant] = room.remoteParticipants
        let videoOccupants: [String] = room.getVideoOccupants()
        let audioOccupants: [String] = room.getAudioOccupants()
        return (localParticipant.id, Array(remoteParticipants.keys), videoOccupants, audioOccupants)
    }

    func s26And27Subscribe(_ room: Room) async -> [Result<Void, Error>] {
        let answer: Answer = { [weak self] result in
            if case .failure = result { self?.lines.append("failed") }
        }
        room.subscribe(videoIds: [videoId])
        room.subscribe(videoId: videoId, completion: answer)
        room.unsubscribe(videoIds: [videoId])
        room.unsubscribe(videoId: videoId, completion: answer)
        return [await room.subscribe(videoId: videoId), await room.unsubscribe(videoId: videoId)]
    }

    func s29Levels(_ room: Room) async -> [String: Int] {
        let answer: ([String: Int]) -> Void = { [weak self] levels in
            self?.lines.append("\(levels.count) levels")
        }
        room.getAudioLevels(completion: answer)
        return await room.getAudioLevels()
    }

    func s31Mute(_ room: Room) {
        room.setMuted(true)
    }

    /// The forms of all versions.
    @available(*, deprecated)
    func s30Statistics(_ room: Room) async -> [Int] {
        let answer: ([String: Statistics]) -> Void = { [weak self] results in
            self?.lines.append("\(results.count) objects")
        }
        room.getLocalStatsReport(completion: answer)
        room.getRemoteStatsReport(completion: answer)
        room.getLocalStats(completion: answer)
        room.getRemoteStats(completion: answer)
        // The present form is the one of a closure without a type.
        room.getLocalStats { report in
            self.lines.append("\(report.statistics.count) objects")
        }
        room.getRemoteStats { report in
            self.lines.append("\(report.statistics.count) objects")
        }
        let local: [String: Statistics] = await room.getLocalStatsReport()
        let remote: [String: Statistics] = await room.getRemoteStatsReport()
        let sent: StatisticsReport = await room.getLocalStats()
        let received: StatisticsReport = await room.getRemoteStats()
        let session: QualitySession? = await room.getLocalQualityStatsReport()
        let other: QualitySession? = await room.getRemoteQualityStatsReport()
        let qualities = [session, other].compactMap { $0 }
        return [local.count, remote.count, sent.statistics.count, received.statistics.count, qualities.count]
    }

    func s30Values(_ statistics: Statistics) -> Double? {
        let id: String = statistics.id
        let type: String = statistics.type
        let timeStamp: CFTimeInterval = statistics.timeStamp
        let values: [String: Any] = statistics.values
        lines.append("\(id) \(type) \(timeStamp > 0)")
        return values["jitter"] as? Double
    }

    @available(*, deprecated)
    func s32Message(_ room: Room) {
        let answer: Answer = { [weak self] result in
            if case .failure(let error) = result { self?.lines.append("\(error)") }
        }
        room.sendUserMessage(participantIds: [participantId], message: "hello", completion: answer)
    }

    func s33Delegate() -> RoomDelegate {
        EveryMethodDelegate()
    }

    func s34Participant(_ participant: LocalParticipant) -> [Int] {
        let videos: [Int: LocalVideo] = participant.videos
        let audios: [Int: LocalAudio] = participant.audios
        return Array(videos.keys) + audios.keys
    }

    func s35Participant(_ participant: RemoteParticipant) -> [String] {
        let id: String = participant.id
        let videos: [Int: RemoteVideo] = participant.videos
        let audios: [Int: RemoteAudio] = participant.audios
        let isVideoSubscribed: Bool = participant.isVideoSubscribed
        return [id, "\(videos.count)", "\(audios.count)", "\(isVideoSubscribed)"]
    }

    func s36LocalVideo(_ video: LocalVideo, _ view: UIRenderView) -> String {
        let id: Int = video.id
        let owner: String = video.owner
        video.active = true
        video.extraValue = "camera"
        video.hd = !video.hd
        video.attach(view)
        let viewId: String = video.viewId
        video.detach()
        return "\(id) \(owner) \(viewId)"
    }

    func s38LocalAudio(_ audio: LocalAudio) -> String {
        let id: Int = audio.id
        let owner: String = audio.owner
        audio.active = !audio.active
        audio.extraValue = "commentary"
        return "\(id) \(owner) \(audio.extraValue)"
    }

    func s39RemoteVideo(_ video: RemoteVideo, _ view: UIRenderView) throws -> [String] {
        let id: Int = video.id
        let owner: String = video.owner
        let active: Bool = video.active
        let extraValue: String = video.extraValue
        let profile: VideoProfileType = video.profile
        let viewId: String = video.viewId
        let isSubscribed: Bool = video.isSubscribed
        video.attach(view)
        video.detach(view)
        video.pause = !video.pause
        try video.setPaused(false)
        try video.setProfile(.low)
        return ["\(id)", owner, "\(active)", extraValue, "\(profile)", viewId, "\(isSubscribed)"]
    }

    func s40RemoteAudio(_ audio: RemoteAudio) -> [String] {
        let id: Int = audio.id
        let owner: String = audio.owner
        let active: Bool = audio.active
        let extraValue: String = audio.extraValue
        let alwaysOn: Bool = audio.alwaysOn
        return ["\(id)", owner, "\(active)", extraValue, "\(alwaysOn)"]
    }

    func s37Attach(_ video: LocalVideo, _ view: UIRenderView) {
        video.attach(view)
    }

    func s37Detach(_ video: LocalVideo) {
        video.detach()
    }
}

/// Of 3.
typealias ProvisionCallbackOfReadme = ConnectLive.ProvisionCallback

/// Every callback that the README declares.
class EveryMethodDelegate: FiveMethods, RoomDelegate {
    var lines: [String] = []

    func onConnecting(progress: Float) { lines.append("\(progress) %") }

    func onLocalMediaPublished(localMedia: LocalMedia?) { lines.append("published") }

    func onLocalMediaUnpublished(localMedia: LocalMedia?) { lines.append("unpublished") }

    func onRemoteVideoPublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {
        lines.append("video \(remoteVideo.id)")
    }

    func onRemoteVideoUnpublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {
        lines.append("no video \(remoteVideo.id)")
    }

    func onRemoteAudioPublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
        lines.append("audio \(remoteAudio.id)")
    }

    func onRemoteAudioUnpublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
        lines.append("no audio \(remoteAudio.id)")
    }

    func onRemoteAudioSubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
        lines.append("hears \(remoteAudio.id)")
    }

    func onRemoteAudioUnsubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
        lines.append("hears \(remoteAudio.id) no longer")
    }

    func onRemoteVideoStateChanged(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {
        lines.append("video \(remoteVideo.id) \(remoteVideo.active) \(remoteVideo.extraValue)")
    }

    func onRemoteAudioStateChanged(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
        lines.append("audio \(remoteAudio.id) \(remoteAudio.active) \(remoteAudio.extraValue)")
    }

    /// Without the type, as version 2.2.0 has it.
    func onUserMessage(senderId: String, message: String) { lines.append("\(senderId): \(message)") }
}

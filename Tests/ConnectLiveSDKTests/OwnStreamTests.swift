import ConnectLiveSDK
import Synchronization
import Testing

/// Streams and participants that an application implements itself. They have the members of iOS, and no others.
private final class OwnLocalVideo: LocalVideo {
    private let isActive = Mutex(true)
    private let texts = Mutex((extraValue: "camera", sort: "0 crop"))
    let id = 4
    let owner = "me"
    let viewId = ""
    var hd: Bool {
        get { false }
        set {}
    }

    var extraValue: String {
        get { texts.withLock { $0.extraValue } }
        set { texts.withLock { $0.extraValue = newValue } }
    }

    var sort: String {
        get { texts.withLock { $0.sort } }
        set { texts.withLock { $0.sort = newValue } }
    }

    var active: Bool {
        get { isActive.withLock { $0 } }
        set { isActive.withLock { $0 = newValue } }
    }

    func attach(_ view: UIRenderView) {}
    func detach() {}
}

private final class OwnLocalAudio: LocalAudio {
    private let isActive = Mutex(true)
    private let isAlwaysOn = Mutex(false)
    private let text = Mutex("")
    let id = 5
    let owner = "me"

    var extraValue: String {
        get { text.withLock { $0 } }
        set { text.withLock { $0 = newValue } }
    }

    var active: Bool {
        get { isActive.withLock { $0 } }
        set { isActive.withLock { $0 = newValue } }
    }

    var alwaysOn: Bool {
        get { isAlwaysOn.withLock { $0 } }
        set { isAlwaysOn.withLock { $0 = newValue } }
    }
}

private final class OwnRemoteVideo: RemoteVideo {
    private let views = Mutex<[String]>([])
    private let profiles = Mutex<[VideoProfileType]>([])
    private let paused = Mutex(false)
    let id: Int
    let owner = "ada"
    let extraValue: String
    let active = true
    let sort = "3 fit"
    let isSubscribed = false

    init(_ id: Int, _ extraValue: String) { (self.id, self.extraValue) = (id, extraValue) }

    var viewId: String { views.withLock { $0.first ?? "" } }
    var requestedProfiles: [VideoProfileType] { profiles.withLock { $0 } }

    func attach(_ view: UIRenderView) { views.withLock { $0.append(view.uuid) } }
    func detach(_ view: UIRenderView) { views.withLock { $0.removeAll { $0 == view.uuid } } }
    func detach() { views.withLock { $0 = [] } }
    var profile: VideoProfileType { profiles.withLock { $0.last ?? .empty } }
    var pause: Bool {
        get { paused.withLock { $0 } }
        set { paused.withLock { $0 = newValue } }
    }
    func setPaused(_ isPaused: Bool) throws { pause = isPaused }
    func setPausedAsync(_ isPaused: Bool) async throws { pause = isPaused }
    func setProfile(_ type: VideoProfileType) throws { profiles.withLock { $0.append(type) } }
    func setProfileAsync(_ type: VideoProfileType) async throws { try setProfile(type) }
}

private final class OwnRemoteAudio: RemoteAudio {
    let id = 3
    let owner = "ada"
    let active = false
    let alwaysOn = true
    let extraValue = "song"
}

private final class OwnLocalParticipant: LocalParticipant {
    let id = "me"
    let videos: [Int: any LocalVideo] = [4: OwnLocalVideo()]
    let audios: [Int: any LocalAudio] = [5: OwnLocalAudio()]
}

private final class OwnRemoteParticipant: RemoteParticipant {
    let id = "ada"
    let videos: [Int: any RemoteVideo]
    let audios: [Int: any RemoteAudio] = [3: OwnRemoteAudio()]

    init(_ videos: [any RemoteVideo]) { self.videos = Dictionary(uniqueKeysWithValues: videos.map { ($0.id, $0) }) }
}

/// Functions of an application, as it would write them for iOS.
@MainActor private final class Screen {
    private(set) var captions: [String] = []
    private var views: [Int: UIRenderView] = [:]

    func onParticipantEntered(remoteParticipant: any RemoteParticipant) {
        for video in remoteParticipant.videos.values.sorted(by: { $0.id < $1.id }) { show(video) }
        for audio in remoteParticipant.audios.values { captions.append("\(audio.owner): \(audio.getExtraValue())") }
    }

    private func show(_ video: any RemoteVideo) {
        let view = UIRenderView()
        views[video.id] = view
        try? video.setProfile(video.extraValue == "screen" ? .high : .low)
        video.attach(view)
        captions.append("\(video.owner): \(video.getExtraValue())")
    }

    func hide(_ video: any RemoteVideo) {
        if let view = views.removeValue(forKey: video.id) { video.detach(view) }
    }

    func mute(_ participant: any LocalParticipant) {
        for video in participant.videos.values { video.active = false }
        for audio in participant.audios.values { audio.setEnabled(!audio.getEnabled()) }
    }
}

@MainActor @Suite struct OwnStreamTests {
    @Test func `an application's functions take participants and streams of its own`() {
        let (camera, slides) = (OwnRemoteVideo(1, "camera"), OwnRemoteVideo(2, "screen"))
        let screen = Screen()
        screen.onParticipantEntered(remoteParticipant: OwnRemoteParticipant([camera, slides]))
        #expect(screen.captions == ["ada: camera", "ada: screen", "ada: song"])
        #expect(camera.requestedProfiles == [.low] && slides.requestedProfiles == [.high])
        screen.hide(camera)
        #expect(camera.viewId.isEmpty && !slides.viewId.isEmpty)
        // Members that only Linux has.
        #expect(camera.state == .live && camera.limitation == nil)
        #expect(camera.isEnabled() && camera.getSort() == (3, "fit") && !OwnRemoteAudio().isEnabled())

        let me = OwnLocalParticipant()
        screen.mute(me)
        for video in me.videos.values {
            video.setExtraValue("screen")
            video.setSort(weight: 9, mode: "stretch")
            video.setSort(weight: 10, mode: "crop")
            #expect(video.getExtraValue() == "screen" && video.getSort() == (9, "stretch"))
        }
        #expect(me.videos.values.allSatisfy { !$0.active && $0.state == .live })
        #expect(me.audios.values.allSatisfy { !$0.getEnabled() && $0.state == .live })
    }

    @Test func `a stream that is held in a constant can be switched off and on`() throws {
        let media = try #require(ConnectLive.createLocalMedia(config: Config()))
        let (video, audio) = (media.video, media.audio)
        video.active = false
        media.audio.active = false
        #expect(!media.video.active && !audio.getEnabled())
        video.setEnabled(true)
        #expect(media.video.getEnabled() && !media.audio.active)
    }
}

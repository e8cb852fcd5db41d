import ConnectLiveSDK
import Foundation
import Logging
import OpenCombine
import RoomServer
import Testing

/// The samples of the original documentation against a room server: they do what their pages state. The names begin with the
/// document and the numbers of docs/samples.md.
@MainActor @Suite(.serialized, .timeLimit(.minutes(2))) struct SampleBehaviourTests {
    /// Waits on the main actor until a condition holds.
    private func wait(for what: String, _ condition: () -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(20)
        while !condition() {
            try #require(ContinuousClock.now < end, "not in time: \(what)")
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// A server whose service is that of the samples. An empty endpoint means this server.
    private func withServer(_ body: @MainActor () async throws -> Void) async throws {
        var configuration = RoomServer.Configuration(
            service: ServiceKey(id: "SERVICE", secret: "KEY:SECRET"),
            log: Logger(label: "server") { _ in SwiftLogNoOpLogHandler() })
        configuration.port = 0
        let server = try await RoomServer.start(configuration)
        setenv("CONNECTLIVE_SERVER", server.url, 1)
        var failure: Error?
        do { try await body() } catch { failure = error }
        ConnectLive.signOut()
        unsetenv("CONNECTLIVE_SERVER")
        await server.stop()
        if let failure { throw failure }
    }

    private func signIn(_ guide: Guide) async -> Bool {
        await withCheckedContinuation { done in
            guide.s2SignInWithSecret { done.resume(returning: $0) }
        }
    }

    /// An application that is signed in, with media of a test pattern in two sizes and a room.
    private func app() async throws -> Guide {
        let guide = Guide()
        try #require(await signIn(guide))
        guide.config.mediaOptions.usesTestPattern = true
        guide.config.mediaOptions.videoLayers = 3
        guide.config.mediaOptions.videoExtraValue = "camera"
        guide.config.mediaOptions.audioExtraValue = "voice"
        guide.s12CreateMedia()
        guide.s18CreateRoom(guide)
        return guide
    }

    /// Two applications in the room of the guide. Only the first one publishes, and the second one knows the names of that.
    private func call() async throws -> (ann: Guide, ben: Guide, video: RemoteVideo) {
        let ann = try await app()
        let ben = try await app()
        ben.s19Connect()
        try await wait(for: "Ben") { ben.participantIds.count == 1 }
        ann.s19Connect()
        ann.s20Publish()
        try await wait(for: "the audio of Ann") { ben.lines.contains { $0.hasPrefix("hears") } }
        ben.participantId = try #require(ann.room).localParticipant.id
        try await wait(for: "the video of Ann") { ben.s23RemoteStreams().count == 4 }
        ben.videoId = ben.s23RemoteStreams()[0]
        let participant = try #require(ben.room?.remoteParticipants[ben.participantId])
        return (ann, ben, try #require(participant.videos[ben.videoId]))
    }

    @Test func `guide 2, 3: a secret signs in, and an unknown token does not`() async throws {
        try await withServer {
            let guide = Guide()
            #expect(await signIn(guide))
            let isTaken = await withCheckedContinuation { done in
                guide.s3SignInWithToken { done.resume(returning: $0) }
            }
            #expect(!isTaken)
        }
    }

    @Test func `guide 6, 12 to 15: media that starts shows its frames in the view, until it is detached`() async throws
    {
        try await withServer {
            let guide = try await app()
            let view = guide.s6View()
            guide.s13Attach(view)
            await guide.s15Start().value
            try await wait(for: "a frame") { view.latestFrame != nil }
            #expect(view.isAssignedStream)
            guide.s14Detach()
            #expect(!view.isAssignedStream)
            await guide.media?.stop()
        }
    }

    @Test func `guide 18 to 23, 33, 36, 38, 40: published media becomes streams of a participant for both sides`()
        async throws
    {
        try await withServer {
            let (ann, ben, _) = try await call()
            let id = ben.participantId
            #expect(ann.s22LocalStreams() == ["camera", "voice", id, id, id, id])
            #expect(ann.participantIds.count == 2 && ann.participantIds == ben.participantIds)
            #expect(ben.participantIds == ben.participantIds.sorted())
            #expect(ben.lines.contains("video of \(id)") && ben.lines.contains("hears \(id)"))
            #expect(ben.s21Participants().contains(id))
            ann.s31Disconnect()
            try await wait(for: "the leave") { ann.lines.last == "left" && !ben.participantIds.contains(id) }
            #expect(ben.lines.contains("no video of \(id)"))
        }
    }

    @Test func `guide 24 to 27: a subscribed video shows its frames in a view, and an unsubscribed one does not`()
        async throws
    {
        try await withServer {
            let (ann, ben, video) = try await call()
            await ben.s24Subscribe(to: ben.videoId)
            #expect(ben.lines.last == "subscribed" && video.isSubscribed)
            #expect(ben.room?.getVideoOccupants() == [ben.participantId])
            let view = UIRenderView()
            ben.s25AttachRemote(view)
            try await wait(for: "a frame") { view.latestFrame != nil }
            ben.s27DetachRemote()
            #expect(!view.isAssignedStream)
            await ben.s26Unsubscribe(from: ben.videoId)
            #expect(ben.lines.last == "unsubscribed" && !video.isSubscribed)
            ann.s31Disconnect()
        }
    }

    @available(*, deprecated)
    @Test func `guide 28, README 32, 33: each callback comes, and a message without its type`() async throws {
        try await withServer {
            let guide = try await app()
            let delegate = EveryMethodDelegate()
            let room = ConnectLive.createRoom(config: Config(), delegate: delegate)
            room.connect(roomId: "a-room")
            try await wait(for: "progress") { delegate.lines.contains("100.0 %") }
            guide.s19Connect()
            try await wait(for: "the guide") { guide.participantIds.count == 2 }
            await guide.s28Message("hello").value
            #expect(guide.lines.last == "sent")
            let id = try #require(guide.room).localParticipant.id
            try await wait(for: "the message") { delegate.lines.contains("\(id): hello") }
            guide.s20Publish()
            for event in ["video", "audio", "hears"] {
                try await wait(for: event) { delegate.lines.contains { $0.hasPrefix(event) } }
            }
            room.disconnect()
        }
    }

    @available(*, deprecated)
    @Test func `guide 29, 30: a call has statistics, also while its audio is not played`() async throws {
        try await withServer {
            let (ann, ben, _) = try await call()
            ben.s29Mute()
            await ben.s24Subscribe(to: ben.videoId)
            ann.lines = []
            ann.s30Statistics(try #require(ann.room))
            ben.lines = []
            ben.s30Statistics(try #require(ben.room))
            try await wait(for: "statistics") { ann.lines.count == 2 && ben.lines.count == 2 }
            #expect(!ann.lines.contains("0 local objects") && !ben.lines.contains("0 remote objects"))
            #expect(ben.room?.getAudioOccupants() == [ben.participantId])
            ann.s31Disconnect()
        }
    }

    @Test func `guide 32: signing out ends the room`() async throws {
        try await withServer {
            let guide = try await app()
            guide.s19Connect()
            try await wait(for: "the room") { guide.participantIds.count == 1 }
            guide.s32SignOut()
            try await wait(for: "its end") { guide.room?.status == .disconnected }
        }
    }

    @available(*, deprecated)
    @Test func `controls 1, 2, 4, 5: media starts and stops, and both ends know how loud it is`() async throws {
        try await withServer {
            let (ann, ben, _) = try await call()
            let controls = Controls()
            let media = try #require(ann.media)
            #expect(Readme().s10AudioTypes() == ["voice", "music"])
            await controls.s1Start(media).value
            try await wait(for: "the level of the tone") { controls.s4LocalLevel(media) > 0 }
            controls.s5RemoteLevels(try #require(ben.room))
            try await wait(for: "the levels") { controls.lines == ["1 levels"] }
            controls.s2Stop(media)
            try await wait(for: "silence") { controls.s4LocalLevel(media) == 0 }
            ann.s31Disconnect()
        }
    }

    @Test func `controls 6 to 9, README 34 to 40: streams have the properties that their publisher sets`() async throws
    {
        try await withServer {
            let (ann, ben, video) = try await call()
            let (controls, readme) = (Controls(), Readme())
            let media = try #require(ann.media)
            media.video.active = false
            try await wait(for: "the camera that is off") { !video.active }
            let own = controls.s6LocalVideo(media.video)
            #expect(own == "\(ben.videoId)\(ben.participantId)camera")
            try await wait(for: "the camera that is on") { video.active }
            #expect(controls.s7LocalAudio(media.audio) == "\(media.audio.id)\(ben.participantId)voice")
            let participant = try #require(ben.room?.remoteParticipants[ben.participantId])
            let audio = try #require(participant.audios.values.first)
            try await wait(for: "audio that is always on") { audio.alwaysOn }
            #expect(controls.s9RemoteAudio(audio) == ["\(audio.id)", ben.participantId, "true", "voice", "true"])
            #expect(readme.s40RemoteAudio(audio) == controls.s9RemoteAudio(audio))
            #expect(readme.s35Participant(participant) == [ben.participantId, "1", "1", "false"])
            await ben.s24Subscribe(to: ben.videoId)
            #expect(readme.s35Participant(participant).last == "true")
            #expect(try controls.s8RemoteVideo(video) == ["\(video.id)", ben.participantId, "true", "camera", "h"])
            #expect(video.pause)
            let view = UIRenderView()
            #expect(try readme.s39RemoteVideo(video, view).first == "\(video.id)")
            #expect(!video.pause && video.profile == .low)
            #expect(readme.s36LocalVideo(media.video, view).isEmpty == false)
            #expect(readme.s34Participant(try #require(ann.room).localParticipant).contains(video.id))
            ann.s31Disconnect()
        }
    }

    @Test func `README 21 to 27: subscriptions answer in all forms`() async throws {
        try await withServer {
            let (ann, ben, _) = try await call()
            let readme = Readme()
            readme.videoId = ben.videoId
            let results = await readme.s26And27Subscribe(try #require(ben.room))
            // The calls before them ended with the video not subscribed.
            #expect(results.allSatisfy { if case .success = $0 { true } else { false } })
            ann.s31Disconnect()
        }
    }

    @Test
    func `controls 10 to 12, README 28, 41 to 43: the status of a shared screen is published, and the others see it`()
        async throws
    {
        let runtime = FileManager.default.temporaryDirectory.appendingPathComponent("samples-\(getpid())")
        try FileManager.default.createDirectory(
            at: runtime, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        setenv("XDG_RUNTIME_DIR", runtime.path, 1)
        defer {
            unsetenv("XDG_RUNTIME_DIR")
            try? FileManager.default.removeItem(at: runtime)
        }
        try await withServer {
            let (ann, ben, _) = try await call()
            let samples = ScreenShareSamples()
            samples.room = ann.room
            var statuses: [ScreenShareData.ExtensionStatus] = []
            let subscription = samples.$screenShareStatus.sink { statuses.append($0) }
            // Without a name, the test is the extension.
            samples.s10StartScreenSharing(appGroup: "group.samples", extensionBundleId: "")
            let socket = runtime.appendingPathComponent("connectlive/groups/group.samples/frames.sock")
            try await wait(for: "the socket") { FileManager.default.fileExists(atPath: socket.path) }
            let share = try ConnectLive.createScreenShare(appGroup: "group.samples")
            share.start { code, message in Issue.record("\(code): \(message)") }
            let frame = try #require(PixelBuffer(width: 1280, height: 720))
            try await wait(for: "the screen") {
                share.sendVideoFrame(sampleBuffer: SampleBuffer(imageBuffer: frame, presentationTimeStamp: .now))
                let videos = ben.room?.remoteParticipants[ben.participantId]?.videos.values
                return videos?.contains { $0.extraValue == "screen" } == true
            }
            try await wait(for: "the statuses") { statuses.last == .broadcastStarted }
            share.stop {}
            try await wait(for: "the last status") { statuses.last == .broadcastClosed }
            samples.s11StopScreenSharing()
            #expect(statuses == [.notAvailable, .broadcastReady, .broadcastStarted, .broadcastClosed, .notAvailable])
            #expect(samples.s12Statuses() == [0, 1, 2, 3])
            subscription.cancel()
            ann.s31Disconnect()
        }
    }

    @Test func `the first call of the page about iOS shows and names the others`() async throws {
        setenv("CONNECTLIVE_SERVICE_ID", "SERVICE", 1)
        setenv("CONNECTLIVE_SERVICE_SECRET", "KEY:SECRET", 1)
        defer {
            unsetenv("CONNECTLIVE_SERVICE_ID")
            unsetenv("CONNECTLIVE_SERVICE_SECRET")
        }
        try await withServer {
            var config = Config()
            config.mediaOptions.usesTestPattern = true
            let (ann, ben) = (CallModel(config: config), CallModel(config: config))
            try await ann.join("kitchen")
            try await ben.join("kitchen")
            try await wait(for: "each other's frames") {
                [ann, ben].allSatisfy { $0.views.values.contains { $0.latestFrame != nil } }
            }
            ben.leave()
            try await wait(for: "the end") { ann.views.isEmpty && ben.views.isEmpty }
            ann.leave()
        }
    }
}

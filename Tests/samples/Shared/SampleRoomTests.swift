import ConnectLiveSDK
import Foundation
import RoomServer
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension SampleTests {
    /// Signing in, rooms, participants and their streams.
    @MainActor @Suite(.timeLimit(.minutes(2))) struct Rooms {
        /// Removes a participant or a whole room, as its administrator.
        private func remove(_ path: String, of server: RoomServer) async throws {
            let address = server.url.replacingOccurrences(of: "ws://", with: "http://")
            var request = URLRequest(url: try #require(URL(string: "\(address)/v1/rooms/\(path)")))
            request.httpMethod = "DELETE"
            let credentials = Data("SERVICE:KEY:SECRET".utf8).base64EncodedString()
            request.setValue("Basic \(credentials)", forHTTPHeaderField: "Authorization")
            let (_, response) = try await URLSession.shared.data(for: request)
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
        }

        @Test func `guide 1 to 3: a secret signs in, and an unknown token does not`() async throws {
            try await withServer { _ in
                let guide = Guide()
                #expect(await signIn(guide))
                let isTaken = await withCheckedContinuation { done in
                    guide.s3SignInWithToken { done.resume(returning: $0) }
                }
                #expect(!isTaken)
            }
        }

        @Test func `README 1 to 4: the callback tells whether the sign-in has succeeded, and signing out ends it`()
            async throws
        {
            try await withServer(id: "serviceId", secret: "serviceSecret") { _ in
                let readme = Readme()
                readme.s1SignIn(serviceId: "serviceId", serviceSecret: "another") { [weak readme] code, message in
                    readme?.lines.append(code != 0 && !message.isEmpty ? "refused" : "taken")
                }
                try await wait(for: "the refusal") { readme.lines == ["refused"] }
                readme.s4SignIn()
                try await wait(for: "the sign-in") { readme.lines == ["refused", "in"] }
                readme.s2SignOut()
                let guide = Guide()
                guide.s18CreateRoom(guide)
                guide.s19Connect()
                try await wait(for: "the end of a room without a sign-in") { guide.latestErrorCode != 0 }
            }
        }

        @Test func `guide 16, 17: no more videos are received than the receivers allow, until one is unsubscribed`()
            async throws
        {
            try await withServer { _ in
                let guide = Guide()
                try #require(await signIn(guide))
                guide.s16Receivers()
                guide.room = ConnectLive.createRoom(config: guide.config, delegate: guide)
                guide.s19Connect()
                var config = Config()
                config.mediaOptions.usesTestPattern = true
                config.mediaOptions.hasAudio = false
                // Without frames, they cost nothing.
                config.mediaOptions.video = false
                let delegate = FiveMethodDelegate()
                let rooms = [11, 10].map { _ in ConnectLive.createRoom(config: Config(), delegate: delegate) }
                var media: [LocalMedia] = []
                for (room, count) in zip(rooms, [11, 10]) {
                    room.connect(roomId: "a-room")
                    for _ in 0..<count {
                        let video = try #require(ConnectLive.createLocalMedia(config: config))
                        media.append(video)
                        try room.publish(video)
                    }
                }
                @MainActor func videos() -> [(participant: String, id: Int)] {
                    (guide.room?.remoteParticipants ?? [:]).flatMap { id, participant in
                        participant.videos.keys.map { (id, $0) }
                    }
                }
                try await wait(for: "all videos") { videos().count == 21 }
                let all = videos()
                guide.lines = []
                for (participant, id) in all {
                    guide.participantId = participant
                    await guide.s24Subscribe(to: id)
                }
                #expect(guide.lines.prefix(20).allSatisfy { $0 == "subscribed" }, "\(guide.lines)")
                #expect(guide.lines.dropFirst(20) == ["subscribe 1322 false"])
                guide.participantId = all[0].participant
                await guide.s26Unsubscribe(from: all[0].id)
                guide.participantId = all[20].participant
                await guide.s24Subscribe(to: all[20].id)
                #expect(guide.lines.suffix(2) == ["unsubscribed", "subscribed"])
                for room in rooms { room.disconnect() }
            }
        }

        @Test
        func `guide 18 to 23, 31, 33, 36 to 41: published media becomes streams of a participant, for both sides`()
            async throws
        {
            try await withServer { _ in
                let (ann, ben, _) = try await call()
                let id = ben.participantId
                #expect(ann.s22LocalStreams() == ["camera", "voice", id, id, id, id])
                #expect(ann.participantIds.count == 2 && ann.participantIds == ben.participantIds)
                #expect(ben.participantIds == ben.participantIds.sorted())
                #expect(ben.lines.contains("video of \(id)") && ben.lines.contains("hears \(id)"))
                #expect(ben.s21Participants().contains(id))
                ann.room?.unpublish(ann.media)
                try await wait(for: "the end of the streams") {
                    ben.lines.contains("no video of \(id)") && ben.lines.contains("hears \(id) no longer")
                }
                #expect(ben.participantIds.contains(id))
                ann.s31Disconnect()
                try await wait(for: "the leave") { ann.lines.last == "left" && !ben.participantIds.contains(id) }
                #expect(ann.participantIds.isEmpty)
            }
        }

        @Test func `guide 24 to 27: a subscribed video shows its frames in a view, and an unsubscribed one does not`()
            async throws
        {
            try await withServer { _ in
                let (ann, ben, video) = try await call()
                await ben.s26Unsubscribe(from: ben.videoId)
                #expect(ben.lines.last == "not subscribed")
                await ben.s24Subscribe(to: ben.videoId)
                #expect(ben.lines.last == "subscribed" && video.isSubscribed)
                await ben.s24Subscribe(to: ben.videoId)
                #expect(ben.lines.last == "subscribed already")
                #expect(ben.room?.getVideoOccupants() == [ben.participantId])
                let view = RenderView()
                ben.s25AttachRemote(view)
                try await wait(for: "a frame") { view.uiView.latestFrame != nil }
                ben.s27DetachRemote()
                #expect(!view.uiView.isAssignedStream)
                await ben.s26Unsubscribe(from: ben.videoId)
                #expect(ben.lines.last == "unsubscribed" && !video.isSubscribed)
                ann.s31Disconnect()
            }
        }

        @available(*, deprecated)
        @Test func `guide 28, README 32: a message reaches all participants or those that it names`() async throws {
            try await withServer { _ in
                let guide = try await app()
                let readme = Readme()
                let delegate = EveryMethodDelegate()
                let room = ConnectLive.createRoom(config: Config(), delegate: delegate)
                room.connect(roomId: "a-room")
                try await wait(for: "progress") { delegate.lines.contains("100.0 %") }
                guide.s19Connect()
                try await wait(for: "the guide") { guide.participantIds.count == 2 }
                await guide.s28Message("to all").value
                #expect(guide.lines.last == "sent")
                let id = try #require(guide.room).localParticipant.id
                try await wait(for: "the message") { delegate.lines.contains("\(id): to all") }
                // A message to one participant reaches the others not.
                let other = EveryMethodDelegate()
                let third = ConnectLive.createRoom(config: Config(), delegate: other)
                third.connect(roomId: "a-room")
                try await wait(for: "the third one") { guide.participantIds.count == 3 }
                readme.participantId = room.localParticipant.id
                readme.s32Message(try #require(guide.room))
                try await wait(for: "the message to one") { delegate.lines.contains("\(id): hello") }
                await guide.s28Message("the last").value
                try await wait(for: "the last message") { other.lines.contains("\(id): the last") }
                #expect(!other.lines.contains("\(id): hello") && readme.lines.isEmpty)
                for room in [room, third] { room.disconnect() }
            }
        }

        @Test func `README 33: each callback comes for media that is published, changed, unpublished and left with`()
            async throws
        {
            try await withServer { _ in
                let guide = try await app()
                guide.s19Connect()
                try await wait(for: "the guide") { guide.participantIds.count == 1 }
                let delegate = try #require(Readme().s33Delegate() as? EveryMethodDelegate)
                let room = ConnectLive.createRoom(config: Config(), delegate: delegate)
                room.connect(roomId: "a-room")
                try await wait(for: "both") { guide.participantIds.count == 2 && delegate.lines.contains("100.0 %") }
                @MainActor func waitForAll(_ lines: [String]) async throws {
                    try await wait(for: "\(lines)") { Set(lines).isSubset(of: delegate.lines) }
                }
                guide.s20Publish()
                let media = try #require(guide.media)
                try await wait(for: "the ids") { media.video.id > 0 && media.audio.id > 0 }
                let (video, audio) = (media.video.id, media.audio.id)
                try await waitForAll(["video \(video)", "audio \(audio)", "hears \(audio)"])
                (media.video.active, media.audio.active) = (false, false)
                try await waitForAll(["video \(video) false camera", "audio \(audio) false voice"])
                (media.video.active, media.audio.active) = (true, true)
                try await waitForAll(["video \(video) true camera", "audio \(audio) true voice"])
                // The delegate's own media.
                let own = try #require(ConnectLive.createLocalMedia(config: guide.config))
                try room.publish(own)
                try await waitForAll(["published"])
                room.unpublish(own)
                try await waitForAll(["unpublished"])
                let id = try #require(guide.room).localParticipant.id
                try await wait(for: "the sound again") { room.getAudioOccupants() == [id] }
                delegate.lines = []
                guide.s31Disconnect()
                try await waitForAll(["no video \(video)", "no audio \(audio)", "hears \(audio) no longer"])
                room.disconnect()
            }
        }

        @available(*, deprecated)
        @Test func `guide 30, README 29, 30: a call has levels and statistics`() async throws {
            try await withServer { _ in
                let (ann, ben, _) = try await call()
                await ben.s24Subscribe(to: ben.videoId)
                ann.lines = []
                ann.s30Statistics(try #require(ann.room))
                ben.lines = []
                let room = try #require(ben.room)
                ben.s30Statistics(room)
                try await wait(for: "statistics") { ann.lines.count == 2 && ben.lines.count == 2 }
                #expect(!ann.lines.contains("0 local objects") && !ben.lines.contains("0 remote objects"))
                let readme = Readme()
                let counts = await readme.s30Statistics(room)
                #expect(counts[1] > 0 && counts[3] > 0)
                let objects = await room.getRemoteStatsReport().values
                let received = try #require(objects.first { $0.values["jitter"] is Double })
                let jitter = try #require(readme.s30Values(received))
                #expect(jitter >= 0)
                #expect(readme.lines.last?.hasSuffix(" true") == true)
                let levels = await readme.s29Levels(room)
                #expect(Array(levels.keys) == [ben.participantId] && levels.values.allSatisfy { 0...100 ~= $0 })
                try await wait(for: "the levels") { readme.lines.last == "1 levels" }
                ann.s31Disconnect()
            }
        }

        @Test func `guide 32: signing out ends the room`() async throws {
            try await withServer { _ in
                let guide = try await app()
                guide.s19Connect()
                try await wait(for: "the room") { guide.participantIds.count == 1 }
                guide.s32SignOut()
                try await wait(for: "its end") { guide.room?.status == .disconnected }
            }
        }

        @Test func `guide 34, 35: a room tells whether it was left, ended, or failed, and errors that do not end it`()
            async throws
        {
            try await withServer { server in
                let guide = try await app()
                guide.s19Connect()
                try await wait(for: "the room") { guide.participantIds.count == 1 }
                guide.room?.subscribe(videoIds: [99])
                try await wait(for: "an error") { guide.lines.last?.hasPrefix("error ") == true }
                #expect(guide.room?.status == .connected && guide.latestErrorCode == 0)
                let id = try #require(guide.room).localParticipant.id
                try await remove("a-room/participants/\(id)", of: server)
                try await wait(for: "the removal") { guide.lines.last == "kicked" }
                #expect(guide.participantIds.isEmpty)
                guide.s18CreateRoom(guide)
                guide.s19Connect()
                try await wait(for: "the room again") { guide.participantIds.count == 1 }
                try await remove("a-room", of: server)
                try await wait(for: "the end of the room") { guide.lines.last == "destroyed" }
                guide.s18CreateRoom(guide)
                guide.room?.connect(roomId: "not a name")
                try await wait(for: "the failure") { guide.lines.last == "ended by 1301" }
                #expect(!guide.latestErrorMessage.isEmpty)
            }
        }

        @Test func `guide 42: media that cannot be published throws the SDK's error`() async throws {
            try await withServer { _ in
                let guide = try await app()
                guide.s20Publish()
                // The room has it already.
                #expect(guide.s42Error() == 1441 && guide.lines.last?.isEmpty == false)
                guide.media = nil
                #expect(guide.s42Error() == 1311)
            }
        }

        @Test func `README 21 to 25: media that is published before the connection is there after it`() async throws {
            try await withServer { _ in
                let ben = try await app()
                ben.s19Connect()
                try await wait(for: "Ben") { ben.participantIds.count == 1 }
                ben.s20Publish()
                let readme = Readme()
                let delegate = EveryMethodDelegate()
                readme.config = ben.config
                readme.media = ConnectLive.createLocalMedia(config: readme.config)
                readme.s21CreateRoom(delegate)
                readme.s22Publish()
                let room = try #require(readme.room)
                #expect(room.localParticipant.videos.isEmpty)
                readme.s23Connect()
                try await wait(for: "both publications") {
                    delegate.lines.contains("published") && delegate.lines.contains { $0.hasPrefix("hears") }
                }
                #expect(room.localParticipant.videos.count == 1)
                let id = try #require(ben.room).localParticipant.id
                ben.participantId = room.localParticipant.id
                try await wait(for: "the streams at the other end") { ben.s23RemoteStreams().count == 4 }
                let video = try #require(room.remoteParticipants[id]?.videos.keys.first)
                _ = await room.subscribe(videoId: video)
                let participants = readme.s25Participants(room)
                #expect(participants.own == ben.participantId && participants.others == [id])
                #expect(participants.videos == [id] && participants.audios == [id])
                readme.s24Disconnect()
                try await wait(for: "the leave") { room.status == .disconnected && ben.participantIds == [id] }
            }
        }

        @Test func `README 26, 27: subscriptions answer in all forms, and those of several videos report their errors`()
            async throws
        {
            try await withServer { _ in
                let (ann, ben, video) = try await call()
                let readme = Readme()
                readme.videoId = ben.videoId
                let results = await readme.s26And27Subscribe(try #require(ben.room))
                #expect(results.allSatisfy { if case .success = $0 { true } else { false } })
                // The last call has ended it.
                #expect(!video.isSubscribed)
                ben.lines = []
                readme.lines = []
                readme.videoId = 99
                let failures = await readme.s26And27Subscribe(try #require(ben.room))
                #expect(failures.allSatisfy { if case .failure = $0 { true } else { false } })
                try await wait(for: "the errors") { readme.lines == ["failed", "failed"] && ben.lines.count == 2 }
                #expect(ben.lines.allSatisfy { $0.hasPrefix("error ") })
                ann.s31Disconnect()
            }
        }

        @available(*, deprecated)
        @Test func `controls 1, 2, 4, 5, README 12: media starts and stops, and both ends know how loud it is`()
            async throws
        {
            try await withServer { _ in
                let (ann, ben, video) = try await call()
                let (controls, readme) = (Controls(), Readme())
                let media = try #require(ann.media)
                await ben.s24Subscribe(to: ben.videoId)
                let (view, changes) = (UIRenderView(), Collected<Bool>())
                view.onActive = { changes.append($0) }
                video.attach(view)
                await controls.s1Start(media).value
                try await wait(for: "the level of the tone") { controls.s4LocalLevel(media) > 0 }
                try await wait(for: "Ann's frames") { changes.all.last == true }
                #expect(0...100 ~= readme.s12Level(media))
                controls.s5RemoteLevels(try #require(ben.room))
                try await wait(for: "the levels") { controls.lines == ["1 levels"] }
                controls.s2Stop(media)
                try await wait(for: "silence") { controls.s4LocalLevel(media) == 0 && readme.s12Level(media) == 0 }
                // Ben's stream stays, and nothing comes any longer.
                let audio = ben.room?.remoteParticipants[ben.participantId]?.audios.values.first
                try await wait(for: "the end of the frames") { changes.all.last == false && video.state != .live }
                try await wait(for: "the end of the sound") { audio.map { $0.state != .live } == true }
                ann.s31Disconnect()
            }
        }

        @available(*, deprecated)
        @Test func `controls 6 to 9, README 34 to 40: streams have the properties that their publisher sets`()
            async throws
        {
            try await withServer { _ in
                let (ann, ben, video) = try await call()
                let (controls, readme) = (Controls(), Readme())
                let media = try #require(ann.media)
                media.video.active = false
                try await wait(for: "the camera that is off") { !video.active }
                #expect(controls.s6LocalVideo(media.video) == "\(ben.videoId)\(ben.participantId)camera")
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
                let view = UIRenderView()
                video.attach(view)
                try await wait(for: "the large frames") { view.latestFrame?.width == 640 }
                video.detach()
                #expect(
                    try controls.s8RemoteVideo(video) == ["\(video.id)", ben.participantId, "true", "camera", "h"])
                #expect(video.pause)
                #expect(try readme.s39RemoteVideo(video, view).first == "\(video.id)")
                #expect(!video.pause && video.profile == .low)
                video.attach(view)
                // A video that goes on after a pause may begin small, too.
                try video.setProfile(.high)
                try await wait(for: "the large frames again") { view.latestFrame?.width == 640 }
                try video.setProfile(.low)
                try await wait(for: "the small frames") { view.latestFrame?.width == 320 }
                video.detach()
                let fresh = try #require(ConnectLive.createLocalMedia(config: ann.config))
                #expect(readme.s36LocalVideo(fresh.video, view) == "0  \(view.uuid)")
                #expect(readme.s36LocalVideo(media.video, view) == "\(video.id) \(ben.participantId) \(view.uuid)")
                let own = try #require(ann.room).localParticipant
                #expect(media.video.hd && readme.s34Participant(own).contains(video.id))
                readme.s37Attach(media.video, view)
                try await wait(for: "a frame") { view.latestFrame != nil }
                readme.s37Detach(media.video)
                #expect(!view.isAssignedStream)
                #expect(readme.s38LocalAudio(media.audio) == "\(audio.id) \(ben.participantId) commentary")
                try await wait(for: "the audio that is off") { !audio.active && audio.extraValue == "commentary" }
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
            try await withServer { _ in
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
}

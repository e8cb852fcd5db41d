import ConnectLiveSDK
import RTP
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import ClientCore
@testable import ConnectLiveSDK
@testable import RoomClient

/// The attributes of streams in rooms on a scripted link.
@Suite(.timeLimit(.minutes(1))) struct AttributeTests {
    private let scripted = ScriptedRoom()
    private let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
    private var room: any Room { scripted.room }
    private var link: ScriptedLink { scripted.link }

    private var changes: [ScriptedLink.Call] {
        link.calls.filter { if case .setStream = $0 { true } else { false } }
    }

    private func publish(in scripted: ScriptedRoom) async throws {
        scripted.join()
        try scripted.room.publish(media)
        try await requireEventually("published") { scripted.heard.last == "localPublished" }
        // The ids are there before the server may be told changes.
        try await requireEventually("told") { scripted.isPublished(media) }
    }

    // MARK: - One's own

    @Test func `attributes that are set before a publish go with it`() async throws {
        media.video.setExtraValue("screen")
        media.video.sort = "5 fit"
        media.audio.extraValue = "song"
        media.audio.active = false
        media.audio.alwaysOn = true
        try await publish(in: scripted)
        let published = try #require(link.publishedAttributes.first)
        #expect(published.video == StreamAttributes(extraValue: "screen", sort: "5 fit"))
        #expect(published.audio == StreamAttributes(extraValue: "song", isActive: false, isAlwaysOn: true))
        #expect(changes.isEmpty)
    }

    @Test func `an attribute that changes while the media is being published is told afterwards`() async throws {
        link.answer { call in if call == .publish { .later } else { .success } }
        scripted.join()
        try room.publish(media)
        try await requireEventually("the call") { link.calls.contains(.publish) }
        media.video.extraValue = "screen"
        media.audio.active = false
        #expect(changes.isEmpty)
        link.answerNext()
        try await requireEventually("told") { changes.count == 2 }
        #expect(
            changes == [
                .setStream(1, StreamChange(extraValue: "screen")), .setStream(2, StreamChange(isActive: false)),
            ])
    }

    @Test func `each change of published media is told once, with what changed`() async throws {
        try await publish(in: scripted)
        media.video.extraValue = "screen"
        media.video.setExtraValue("screen")
        media.video.setSort(weight: 9, mode: "stretch")
        media.video.active = false
        media.video.setEnabled(true)
        media.audio.setExtraValue("song")
        for isAlwaysOn in [false, true, true] { media.audio.alwaysOn = isAlwaysOn }
        #expect(
            changes == [
                .setStream(1, StreamChange(extraValue: "screen")), .setStream(1, StreamChange(sort: "9 stretch")),
                .setStream(1, StreamChange(isActive: false)), .setStream(1, StreamChange(isActive: true)),
                .setStream(2, StreamChange(extraValue: "song")), .setStream(2, StreamChange(isAlwaysOn: true)),
            ])
        #expect(media.audio.alwaysOn)
        #expect(media.video.getExtraValue() == "screen" && media.video.getSort() == (9, "stretch"))
        #expect(scripted.errors.isEmpty)
    }

    @Test(arguments: [(10, "crop"), (-1, "fit"), (0, "zoom"), (0, "")])
    func `a sort that does not exist is an error of the rooms, and changes nothing`(weight: Int, mode: String)
        async throws
    {
        media.video.setSort(weight: 1, mode: "fit")
        media.video.setSort(weight: weight, mode: mode)
        try await publish(in: scripted)
        media.video.setSort(weight: weight, mode: mode)
        #expect(scripted.errors == [2021] && media.video.sort == "1 fit" && changes.isEmpty)
    }

    @Test(arguments: ["", "5", "5 zoom", "10 fit", "5 fit 6", "fit 5", " 5 fit"])
    func `a sort of another form has the weight and the mode of the default`(sort: String) {
        media.video.sort = sort
        #expect(media.video.sort == sort && media.video.getSort() == (0, "crop"))
    }

    @Test func `each room that has the media is told, by its own ids, also after a rejoin, and no other`() async throws
    {
        let other = ScriptedRoom()
        try await publish(in: scripted)
        try await publish(in: other)
        link.send(.republished(participant: "me again", [1: 11, 2: 12]))
        media.video.extraValue = "a"
        #expect(link.calls.last == .setStream(11, StreamChange(extraValue: "a")))
        #expect(other.link.calls.last == .setStream(1, StreamChange(extraValue: "a")))
        room.unpublish(media)
        other.link.send(.ended(.destroyed, nil))
        media.video.extraValue = "b"
        #expect(changes.count == 1 && link.calls.last == .unpublish([11, 12]))
        #expect(other.link.calls.last == .setStream(1, StreamChange(extraValue: "a")))
    }

    @Test func `media that is published again before the reply to its unpublish is told what changes afterwards`()
        async throws
    {
        try await publish(in: scripted)
        link.answer { _ in .later }
        room.unpublish(media)
        try room.publish(media)
        try await requireEventually("the call") { link.calls.count { $0 == .publish } == 2 }
        link.answerNext()
        link.answerNext()
        try await requireEventually("published again") { scripted.isPublished(media) }
        link.answer { _ in .success }
        media.video.extraValue = "screen"
        media.audio.active = false
        media.video.setSort(weight: 10, mode: "crop")
        #expect(
            changes == [
                .setStream(3, StreamChange(extraValue: "screen")), .setStream(4, StreamChange(isActive: false)),
            ])
        #expect(scripted.errors == [2021])
    }

    @Test func `a value that no room takes is an error of the rooms, and the one before stays`() async throws {
        media.video.extraValue = "screen"
        media.video.sort = "1 fit"
        try await publish(in: scripted)
        media.video.extraValue = String(repeating: "x", count: 1025)
        media.audio.extraValue = String(repeating: "x", count: 1025)
        media.video.sort = String(repeating: "9", count: 33)
        media.video.sort = "1\nfit"
        #expect(scripted.errors == [1441, 1441, 2001, 2001] && changes.isEmpty)
        #expect(media.video.extraValue == "screen" && media.video.sort == "1 fit" && media.audio.extraValue.isEmpty)
    }

    @Test func `the options' video and audio are told like active, and other options tell nothing`() async throws {
        try await publish(in: scripted)
        try await media.update { options in (options.audio, options.videoWidth) = (false, 320) }
        try await media.update { options in options.isMirror = true }
        media.audio.active = false
        try await media.update { options in (options.audio, options.video) = (true, false) }
        #expect(
            changes == [
                .setStream(2, StreamChange(isActive: false)), .setStream(1, StreamChange(isActive: false)),
                .setStream(2, StreamChange(isActive: true)),
            ])
    }

    @Test func `others see a stream as it is after two threads have turned it on and off`() async throws {
        for _ in 0..<200 {
            await withTaskGroup { group in
                for isActive in [true, false] { group.addTask { [media] in media.audio.active = isActive } }
            }
            let session = try #require(media as? LocalMediaSession)
            #expect(session.attributes.audio.isActive == media.audio.active)
        }
    }

    @Test func `a change for which the room has no time is an error, and told with the next one`() async throws {
        try await publish(in: scripted)
        link.answer { _ in .failure(RoomError(.tooManyRequests, "Later.")) }
        media.video.extraValue = "screen"
        #expect(scripted.errors == [2014])
        link.answer { _ in .success }
        media.audio.extraValue = "song"
        #expect(
            changes.dropFirst() == [
                .setStream(1, StreamChange(extraValue: "screen")), .setStream(2, StreamChange(extraValue: "song")),
            ])
    }

    @Test func `media whose unpublish is refused is told what changed meanwhile`() async throws {
        try await publish(in: scripted)
        link.answer { call in if case .unpublish = call { .later } else { .success } }
        room.unpublish(media)
        media.audio.extraValue = "song"
        #expect(changes.isEmpty)
        link.answerNext(with: .failure(RoomError(.tooManyRequests, "Later.")))
        #expect(scripted.errors == [1445])
        #expect(changes == [.setStream(2, StreamChange(extraValue: "song"))])
    }

    @Test func `a room that is released while an attribute changes does not hold the change up`() async throws {
        for _ in 0..<50 {
            var other: ScriptedRoom? = ScriptedRoom()
            other?.join()
            try other?.room.publish(media)
            let change = Task.detached { [media] in media.video.extraValue += "x" }
            other = nil
            await change.value
        }
        #expect(media.video.extraValue.count == 50)
    }

    // MARK: - Those of others

    private func ann(_ attributes: StreamAttributes = StreamAttributes()) -> ParticipantInfo {
        ParticipantInfo(
            id: "ann",
            streams: [
                StreamInfo(id: 7, media: .video, codec: "VP8", attributes: attributes),
                StreamInfo(id: 8, media: .audio, codec: "opus", attributes: attributes),
            ])
    }

    @Test func `streams have the attributes with which they were announced`() throws {
        scripted.join(with: [ann(StreamAttributes(extraValue: "screen", isActive: false, sort: "5 fit"))])
        let video = try #require(room.remoteParticipants["ann"]?.videos[7])
        let audio = try #require(room.remoteParticipants["ann"]?.audios[8])
        #expect(!video.active && !video.isEnabled() && video.getExtraValue() == "screen")
        #expect(video.sort == "5 fit" && video.getSort() == (5, "fit"))
        #expect(!audio.active && !audio.isEnabled() && audio.extraValue == "screen")
        #expect(!audio.alwaysOn && !audio.isAlwaysOn())
    }

    @Test func `a change is reported once, with the new values in the callback and not before`() throws {
        let seen = Mutex<[String]>([])
        scripted.join(with: [ann()])
        let video = try #require(room.remoteParticipants["ann"]?.videos[7])
        let audio = try #require(room.remoteParticipants["ann"]?.audios[8])
        scripted.listener.react { event in
            seen.withLock {
                $0.append(
                    "\(event.name) \(video.active) \(video.extraValue) \(video.sort) \(audio.active) \(audio.isAlwaysOn()) "
                        + "\(audio.state)")
            }
        }
        let infos = ann().streams
        scripted.holdingCallbacks {
            link.send(.streamChanged(participant: "ann", infos[0], StreamChange(isActive: false, sort: "5 fit")))
            link.send(.streamChanged(participant: "ann", infos[0], StreamChange(extraValue: "a")))
            link.send(
                .streamChanged(participant: "ann", infos[1], StreamChange(state: .waiting("off"), isActive: false)))
            link.send(.streamChanged(participant: "ann", infos[1], StreamChange(state: .live)))
            link.send(.streamChanged(participant: "ann", infos[1], StreamChange(isAlwaysOn: true)))
            // A video has no such attribute.
            link.send(.streamChanged(participant: "ann", infos[0], StreamChange(isAlwaysOn: true)))
            #expect(video.active && video.extraValue.isEmpty && video.sort == "0 crop" && audio.active)
        }
        _ = scripted.heard
        #expect(
            seen.withLock { $0 } == [
                "videoStateChanged false  5 fit true false live", "videoStateChanged false a 5 fit true false live",
                #"audioChanged false a 5 fit true false waiting(reason: "off")"#,
                #"audioStateChanged false a 5 fit false false waiting(reason: "off")"#,
                "audioChanged false a 5 fit false false live", "audioStateChanged false a 5 fit false true live",
            ])
    }
}

extension SDKTests {
    /// Attributes in a room of a server.
    @Suite(.timeLimit(.minutes(1))) struct ServedAttributes {
        @Test func `others see that a microphone is muted, and the new values of a video`() async throws {
            try await onStage { _ in
                let (viewer, publisher) = (Client(), Client())
                _ = try await viewer.join("attributes")
                _ = try await publisher.join("attributes")
                let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0), extraValue: "camera")
                try publisher.room.publish(media)
                let video = try await viewer.listener.waitForVideo()
                #expect(video.extraValue == "camera" && video.active)
                media.video.extraValue = "screen"
                media.video.setSort(weight: 5, mode: "fit")
                media.audio.active = false
                try await requireEventually("the values") { video.extraValue == "screen" && video.sort == "5 fit" }
                let muted = try await viewer.listener.wait(for: "mute") { event -> (any RemoteAudio)? in
                    guard case .audioStateChanged(let audio) = event else { return nil }
                    return audio
                }
                #expect(!muted.active && muted.extraValue == "camera")
                let late = Client()
                _ = try await late.join("attributes")
                let seen = try #require(late.room.remoteParticipants.values.first { !$0.audios.isEmpty })
                #expect(seen.audios.values.allSatisfy { !$0.active })
                #expect(seen.videos.values.map(\.sort) == ["5 fit"])
                for client in [viewer, publisher, late] { try await client.leave() }
                await media.stop()
            }
        }
    }
}

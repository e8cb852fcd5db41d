import ConnectLiveSDK
import RoomProtocol
import TestSupport
import Testing

@testable import ClientCore
@testable import ConnectLiveSDK
@testable import RoomClient

/// Pauses and profiles of videos in a room on a scripted link.
@Suite(.timeLimit(.minutes(1))) struct PauseTests {
    private let scripted = ScriptedRoom()
    private var room: any Room { scripted.room }
    private var link: ScriptedLink { scripted.link }
    private let refusal = RoomError(.tooManyRequests, "Later.")

    /// A video with this id and so many layers.
    private func video(layers: Int = 3) throws -> any RemoteVideo {
        let info = StreamInfo(id: 7, media: .video, codec: "VP8", extraValue: "", layers: layers)
        scripted.join(with: [ParticipantInfo(id: "ann", streams: [info])])
        return try #require(room.remoteParticipants["ann"]?.videos[7])
    }

    private func code(_ body: () throws -> Void) -> Int? {
        do {
            try body()
            return nil
        } catch {
            return (error as? ConnectLiveError)?.code
        }
    }

    private func code(_ body: () async throws -> Void) async -> Int? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? ConnectLiveError)?.code
        }
    }

    @Test func `a pause and a profile reach the server together, each change once, and end with the subscription`()
        async throws
    {
        let video = try video()
        #expect(video.profile == .high && !video.pause && !video.isPaused())
        try await room.subscribe(videoId: 7).get()
        try video.setProfile(.low)
        try video.setPaused(true)
        video.pause = true
        #expect(video.profile == .low && video.isPaused())
        try await video.setProfileAsync(.mid)
        try await video.setPausedAsync(false)
        try video.setProfile(.empty)
        #expect(video.profile == .high)
        video.pause = true
        try await room.unsubscribe(videoId: 7).get()
        #expect(!video.pause && video.profile == .high)
        try await room.subscribe(videoId: 7).get()
        #expect(
            link.calls.dropFirst() == [
                .subscribe(7, StreamView()), .setView(7, StreamView(profile: .low)),
                .setView(7, StreamView(profile: .low, isPaused: true)),
                .setView(7, StreamView(profile: .mid, isPaused: true)), .setView(7, StreamView(profile: .mid)),
                .setView(7, StreamView()), .setView(7, StreamView(isPaused: true)), .unsubscribe(7),
                .subscribe(7, StreamView()),
            ])
        #expect(scripted.errors.isEmpty)
    }

    @Test func `a priority reaches the server with the rest of the view, and ends with the subscription`() async throws
    {
        let video = try video()
        #expect(video.priority == 1 && code { try video.setPriority(4) } == 1327)
        try await room.subscribe(videoId: 7).get()
        try video.setPriority(4)
        try video.setProfile(.mid)
        try await video.setPriorityAsync(0.5)
        #expect(video.priority == 0.5)
        for wrong in [0, -1, 101, .nan, .infinity] { #expect(code { try video.setPriority(wrong) } == 1353) }
        #expect(video.priority == 0.5)
        try await video.setPriorityAsync(1)
        #expect(
            link.calls.dropFirst(2) == [
                .setView(7, StreamView(priority: 4)), .setView(7, StreamView(profile: .mid, priority: 4)),
                .setView(7, StreamView(profile: .mid, priority: 0.5)), .setView(7, StreamView(profile: .mid)),
            ])
        try await video.setPriorityAsync(2)
        link.answer { [refusal] call in if case .setView = call { .failure(refusal) } else { .success } }
        #expect(await code { try await video.setPriorityAsync(3) } == 1353)
        #expect(video.priority == 2)
        try await room.unsubscribe(videoId: 7).get()
        #expect(video.priority == 1)
    }

    @Test func `a video that waits for its subscription can be paused`() throws {
        let video = try video()
        link.answer { call in if case .subscribe = call { .later } else { .success } }
        room.subscribe(videoIds: [7])
        try video.setPaused(true)
        #expect(link.calls.last == .setView(7, StreamView(isPaused: true)))
        link.answerNext(with: .failure(refusal))
        #expect(!video.pause && scripted.errors == [1329])
    }

    @Test func `a video that is subscribed once more, while the first subscription is under way, can be paused`() throws
    {
        let video = try video()
        link.answer { call in if case .subscribe = call { .later } else { .success } }
        room.subscribe(videoIds: [7])
        link.answer { call in
            if case .subscribe = call { .failure(RoomError(.alreadySubscribed, "It is.")) } else { .success }
        }
        room.subscribe(videoIds: [7])
        link.answerNext(with: .success(()))
        try video.setPaused(true)
        #expect(video.pause && link.calls.last == .setView(7, StreamView(isPaused: true)))
        #expect(scripted.errors == [1321])
    }

    @Test func `a subscription that fails late leaves the pause to the one after it`() throws {
        let video = try video()
        link.answer { call in if case .subscribe = call { .later } else { .success } }
        room.subscribe(videoIds: [7])
        room.unsubscribe(videoIds: [7])
        room.subscribe(videoIds: [7])
        try video.setPaused(true)
        link.answerNext(with: .failure(RoomError(.receiversExhausted, "All are in use.")))
        #expect(video.pause && scripted.errors == [1322])
        link.answerNext()
        try video.setProfile(.low)
        #expect(link.calls.last == .setView(7, StreamView(profile: .low, isPaused: true)))
        room.unsubscribe(videoIds: [7])
        room.subscribe(videoIds: [7])
        link.answerNext(with: .failure(RoomError(.receiversExhausted, "All are in use.")))
        #expect(code { try video.setPaused(true) } == 1327)
    }

    @Test func `a video whose subscription could not be ended keeps its pause and its profile`() async throws {
        let video = try video()
        try await room.subscribe(videoId: 7).get()
        try video.setProfile(.low)
        let full = RoomError(.outOfOrder, "Too many requests are pending.")
        link.answer { _ in .later }
        try video.setPaused(true)
        room.unsubscribe(videoIds: [7])
        // Replies in another order than the calls: the end was not sent.
        link.answerLast(with: .failure(full))
        link.answerNext()
        #expect(video.isSubscribed && video.pause && video.profile == .low && scripted.errors == [1331])
        link.answer { _ in .success }
        try video.setProfile(.mid)
        #expect(link.calls.last == .setView(7, StreamView(profile: .mid, isPaused: true)))
        try await room.unsubscribe(videoId: 7).get()
        #expect(!video.isSubscribed && !video.pause && video.profile == .high)
    }

    @Test(arguments: [true, false])
    func `a subscription that begins before its former end has failed goes on with the former settings or its own`(
        isChanged: Bool
    ) async throws {
        let video = try video()
        try await room.subscribe(videoId: 7).get()
        try video.setProfile(.low)
        link.answer { _ in .later }
        room.unsubscribe(videoIds: [7])
        room.subscribe(videoIds: [7])
        #expect(video.profile == .high)
        if isChanged { try video.setPaused(true) }
        link.answerNext(with: .failure(RoomError(.outOfOrder, "Too many requests are pending.")))
        link.answerNext(with: .failure(RoomError(.alreadySubscribed, "It is.")))
        if isChanged { link.answerNext() }
        #expect(video.isSubscribed && video.pause == isChanged && video.profile == (isChanged ? .high : .low))
        try video.setPriority(4)
        let view = isChanged ? StreamView(priority: 4, isPaused: true) : StreamView(profile: .low, priority: 4)
        #expect(link.calls.last == .setView(7, view))
    }

    @Test func `a video that is not subscribed has no pause and no profile`() async throws {
        let video = try video()
        #expect(code { try video.setPaused(true) } == 1327)
        #expect(code { try video.setProfile(.low) } == 1327)
        #expect(await code { try await video.setPausedAsync(true) } == 1327)
        #expect(await code { try await video.setProfileAsync(.low) } == 1327)
        video.pause = true
        #expect(!video.pause && scripted.errors == [1327] && link.calls.count == 1)
    }

    @Test func `a video with one layer has no profiles, and can be paused`() async throws {
        let video = try video(layers: 1)
        try await room.subscribe(videoId: 7).get()
        #expect(code { try video.setProfile(.low) } == 1352)
        #expect(await code { try await video.setProfileAsync(.high) } == 1352)
        try video.setProfile(.empty)
        #expect(video.profile == .empty && link.calls.count == 2)
        try video.setPaused(true)
        #expect(video.pause && link.calls.last == .setView(7, StreamView(isPaused: true)))
    }

    @Test func `a refusal of the server is thrown or reported, and the video stays as it was`() async throws {
        let video = try video()
        try await room.subscribe(videoId: 7).get()
        link.answer { [refusal] call in if case .setView = call { .failure(refusal) } else { .success } }
        #expect(await code { try await video.setPausedAsync(true) } == 1351)
        #expect(await code { try await video.setProfileAsync(.low) } == 1353)
        try video.setPaused(true)
        try video.setProfile(.low)
        video.pause = true
        #expect(scripted.errors == [1351, 1353, 1351])
        #expect(!video.pause && video.profile == .high)
    }

    @Test func `the state that the server has accepted last stays if it refuses two changes`() async throws {
        let video = try video()
        try await room.subscribe(videoId: 7).get()
        try video.setProfile(.mid)
        link.answer { call in if case .setView = call { .later } else { .success } }
        try video.setProfile(.low)
        try video.setPaused(true)
        #expect(video.pause && video.profile == .low)
        for _ in 0..<2 { link.answerNext(with: .failure(refusal)) }
        #expect(!video.pause && video.profile == .mid && scripted.errors == [1353, 1351])
    }

    @Test func `a video of a room that has ended has no pause and no profile`() async throws {
        let video = try video()
        try await room.subscribe(videoId: 7).get()
        link.answer { call in if case .setView = call { .later } else { .success } }
        async let waiting = code { try await video.setPausedAsync(true) }
        try await requireEventually("the call") { link.calls.count == 3 }
        link.send(.ended(.destroyed, nil))
        link.answerNext(with: .failure(RoomError(.roomReleased, "The room is over.")))
        #expect(await waiting == 1354)
        #expect(code { try video.setPaused(false) } == 1354 && code { try video.setProfile(.low) } == 1354)
        #expect(!video.pause)
    }

    @Test func `profiles have the names of the original`() {
        #expect([VideoProfileType.empty, .low, .mid, .high].map(\.rawValue) == ["", "l", "m", "h"])
    }
}

extension SDKTests {
    /// A pause in a room of a server.
    @Suite(.timeLimit(.minutes(1))) struct ServedPauses {
        @Test func `a paused video shows no frames until it goes on`() async throws {
            try await onStage { _ in
                let (viewer, publisher) = (Client(), Client())
                _ = try await viewer.join("pauses")
                _ = try await publisher.join("pauses")
                let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
                try publisher.room.publish(media)
                let video = try await viewer.listener.waitForVideo()
                let watcher = try await viewer.watch(video)
                try await requireEventually("frames") { watcher.sights.count > 10 }
                try await video.setPausedAsync(true)
                try await requireEventually("stillness") { [sights = watcher.sights.count] in
                    try? await Task.sleep(for: .milliseconds(500))
                    return watcher.sights.count > sights ? false : true
                }
                let before = watcher.sights.count
                try await video.setPausedAsync(false)
                try await requireEventually("frames again") { watcher.sights.count > before + 10 }
                let codes = watcher.sights.compactMap(\.barCode)
                #expect(codes == codes.sorted())
                for client in [viewer, publisher] { try await client.leave() }
                await media.stop()
            }
        }
    }
}

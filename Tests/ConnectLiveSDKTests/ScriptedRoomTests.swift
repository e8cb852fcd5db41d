import ConnectLiveSDK
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import ConnectLiveSDK
@testable import RoomClient

/// The events, participants and calls of a room, on a scripted link.
@Suite struct ScriptedRoomTests {
    private let scripted = ScriptedRoom()
    private let lost = RoomError(.connectionLost, "The server is lost.")
    private var room: any Room { scripted.room }
    private var link: ScriptedLink { scripted.link }

    private func video(_ id: Int, _ state: RoomProtocol.StreamState = .live) -> StreamInfo {
        var info = StreamInfo(id: id, media: .video, codec: "VP8", extraValue: "camera")
        info.state = state
        return info
    }

    private func audio(_ id: Int) -> StreamInfo { StreamInfo(id: id, media: .audio, codec: "opus", extraValue: "song") }

    // MARK: - Connecting and leaving

    @Test func `a room reports its progress, and lists the participants, itself first`() {
        room.connect(roomId: "scripted")
        #expect(room.status == .connecting && link.calls == [.connect("scripted")])
        for percent in [33, 66, 100] { link.send(.connecting(percent: percent)) }
        link.send(.connected(participant: "me", others: [ParticipantInfo(id: "ann", streams: [video(7), audio(8)])]))
        #expect(scripted.heard == ["progress", "progress", "progress", "connected"])
        guard case .connected(let ids) = scripted.listener.events.last else { return }
        #expect(ids == ["me", "ann"])
        #expect(room.isConnected && room.localParticipant.id == "me")
        #expect(room.remoteParticipants["ann"]?.videos[7]?.owner == "ann")
        #expect(room.remoteParticipants["ann"]?.audios[8]?.extraValue == "song")
    }

    @Test func `a name that no room can have is the only critical error, and nothing connects`() {
        room.connect(roomId: "my room")
        #expect(scripted.heard == ["error", "disconnected"])
        #expect(scripted.criticalErrors == [1301])
        #expect(link.calls.isEmpty && room.status == .disconnected)
    }

    @Test func `a room connects once`() {
        scripted.join()
        room.connect(roomId: "other")
        #expect(scripted.heard == ["connected", "error"])
        #expect(scripted.errors == [1302])
        #expect(link.calls == [.connect("scripted")] && room.isConnected)
    }

    @Test func `the error that ends a room comes directly before onDisconnected, and nothing follows`() {
        scripted.join()
        scripted.holdingCallbacks {
            link.send(.participantEntered(ParticipantInfo(id: "ann", streams: [])))
            link.send(.ended(.disconnected, lost))
            link.send(.participantEntered(ParticipantInfo(id: "bob", streams: [])))
            link.send(.ended(.destroyed, nil))
        }
        #expect(scripted.heard == ["connected", "entered", "error", "disconnected"])
        #expect(scripted.criticalErrors == [1312])
        #expect(room.status == .disconnected)
    }

    @Test(arguments: [(Closing.Reason.destroyed, DisconnectReason.destroyed), (.kicked, .kicked)])
    func `a room that the server ends is not an error`(sent: Closing.Reason, expected: DisconnectReason) {
        scripted.join()
        link.send(.ended(sent, RoomError(.roomReleased, "The room is over.")))
        #expect(scripted.heard == ["connected", "disconnected"])
        let reasons = scripted.listener.events.compactMap { if case .disconnected(let why) = $0 { why } else { nil } }
        #expect(reasons == [expected])
    }

    @Test(arguments: [
        (Closing.Reason.destroyed, RoomError(.roomEnded, "The administrator ended the room."), 2007),
        (.destroyed, RoomError(.roomReleased, "The server is shutting down."), 1302),
        (.kicked, RoomError(.roomReleased, "The administrator removed this participant."), 1302),
        (.disconnected, RoomError(.connectionLost, "The server is lost."), 1312),
    ])
    func `the room names the cause of its end from onDisconnected on`(
        sent: Closing.Reason, cause: RoomError, code: Int
    ) throws {
        let seen = Mutex<[Int?]>([])
        scripted.listener.react { [room = scripted.room] event in
            guard case .disconnected = event else { return }
            seen.withLock { $0.append(room.disconnectError?.code) }
        }
        scripted.join()
        #expect(room.disconnectError == nil)
        link.send(.ended(sent, cause))
        #expect(scripted.heard.last == "disconnected")
        #expect(seen.withLock { $0 } == [code])
        #expect(room.disconnectError?.errorDescription == cause.sdkMessage)
        // The first cause stays.
        link.send(.ended(.disconnected, lost))
        #expect(room.disconnectError?.code == code)
    }

    @Test func `a room that the application leaves has no cause of its end`() {
        scripted.join()
        room.disconnect()
        link.send(.ended(.disconnected, nil))
        #expect(scripted.heard.last == "disconnected" && room.disconnectError == nil)
    }

    @Test func `only onDisconnected follows a disconnect, whatever happens meanwhile`() {
        scripted.join()
        scripted.holdingCallbacks {
            link.send(.participantEntered(ParticipantInfo(id: "ann", streams: [])))
            room.disconnect()
            #expect(room.status == .disconnecting)
            link.send(.problem(lost))
            link.send(.ended(.disconnected, lost))
        }
        #expect(scripted.heard == ["connected", "disconnected"])
        #expect(link.calls == [.connect("scripted"), .disconnect])
    }

    @Test func `a disconnect in a callback is the last event but one`() {
        scripted.listener.react { [room = scripted.room] event in
            if case .progress(66) = event { room.disconnect() }
        }
        scripted.holdingCallbacks {
            room.connect(roomId: "scripted")
            for percent in [33, 66, 100] { link.send(.connecting(percent: percent)) }
            link.send(.connected(participant: "me", others: []))
        }
        #expect(scripted.heard == ["progress", "progress"])
        link.send(.ended(.disconnected, nil))
        #expect(scripted.heard == ["progress", "progress", "disconnected"])
    }

    @Test func `a room that never connected ends without its link`() {
        room.disconnect()
        #expect(scripted.heard == ["disconnected"])
        #expect(link.calls.isEmpty)
    }

    @Test func `a room that is released leaves`() {
        let link = ScriptedLink()
        var room: (any Room)? = RoomSession(delegate: scripted.listener) { _ in link }
        room?.connect(roomId: "scripted")
        weak let remembered = room
        room = nil
        #expect(remembered == nil)
        #expect(link.calls == [.connect("scripted"), .disconnect])
    }

    @Test func `an application that never returns loses the room`() {
        scripted.join()
        scripted.holdingCallbacks {
            for percent in 0...DelegateQueue.capacity { link.send(.connecting(percent: percent)) }
        }
        #expect(scripted.heard.suffix(2) == ["error", "disconnected"])
        #expect(scripted.criticalErrors == [1302])
        #expect(link.calls == [.connect("scripted"), .disconnect])
    }

    // MARK: - Participants

    @Test func `participants and their streams change with their callbacks, not before`() {
        let seen = Mutex<[String]>([])
        scripted.listener.react { [room = scripted.room] event in
            let others = room.remoteParticipants.values
            let videos = others.flatMap { $0.videos.values }
            let waits = videos.contains { $0.state != .live } ? " waits" : ""
            seen.withLock { $0.append("\(event.name): \(others.map(\.id)) \(videos.map(\.id))\(waits)") }
        }
        scripted.join()
        scripted.holdingCallbacks {
            link.send(.participantEntered(ParticipantInfo(id: "ann", streams: [])))
            link.send(.streamPublished(participant: "ann", video(7)))
            link.send(
                .streamChanged(
                    participant: "ann", video(7, .waiting("camera lost")), StreamChange(state: .waiting("camera lost")))
            )
            link.send(.streamChanged(participant: "ann", video(7), StreamChange(state: .live)))
            // The last one of those that wait.
            link.send(
                .streamChanged(
                    participant: "ann", video(7, .waiting("video off")), StreamChange(state: .waiting("video off"))))
            link.send(.participantLeft(ParticipantInfo(id: "ann", streams: [video(7)])))
            #expect(room.remoteParticipants.isEmpty)
        }
        _ = scripted.heard
        #expect(
            seen.withLock { $0 } == [
                "connected: [] []", #"entered: ["ann"] []"#, #"video: ["ann"] [7]"#,
                #"videoChanged: ["ann"] [7] waits"#, #"videoGone: ["ann"] [7] waits"#, "left: [] []",
            ])
    }

    @Test func `a view is free again after its video ended and the application was notified`() throws {
        scripted.join(with: [ParticipantInfo(id: "ann", streams: [video(7), video(9)])])
        let videos = try #require(room.remoteParticipants["ann"]?.videos)
        let views = [7: FrameView(), 9: FrameView()]
        for (id, view) in views { videos[id]?.attach(view) }
        #expect(views.values.allSatisfy { $0.isAssignedStream })
        link.send(.streamUnpublished(participant: "ann", video(7)))
        #expect(scripted.heard == ["connected", "videoGone"])
        #expect(scripted.listener.viewsOfGoneVideos == [views[7]?.uuid])
        #expect(views[7]?.isAssignedStream == false && views[9]?.isAssignedStream == true)
        link.send(.participantLeft(ParticipantInfo(id: "ann", streams: [video(9)])))
        #expect(scripted.heard == ["connected", "videoGone", "videoGone", "left"])
        #expect(scripted.listener.viewsOfGoneVideos == [views[7]?.uuid, views[9]?.uuid])
        #expect(views[9]?.isAssignedStream == false && videos[9]?.viewId == "")
    }

    @Test func `the participants that are heard have one of the slots`() {
        scripted.join(with: [
            ParticipantInfo(id: "ann", streams: [audio(7), audio(8)]), ParticipantInfo(id: "bob", streams: [audio(9)]),
        ])
        for (id, stream) in [("bob", 9), ("ann", 7), ("ann", 8)] {
            link.send(.audioHeard(participant: id, stream: stream))
        }
        #expect(room.getAudioOccupants() == ["bob", "ann"])
        #expect(scripted.heard == ["connected", "heard", "heard", "heard"])
        link.send(.audioUnheard(participant: "bob", stream: 9))
        #expect(room.getAudioOccupants() == ["ann"])
        #expect(scripted.heard == ["connected", "heard", "heard", "heard", "unheard"])
    }

    @Test func `a delegate that is blocked during 100,000 slot changes keeps its room, and hears the latest state`() {
        scripted.join(with: [ParticipantInfo(id: "ann", streams: (1...8).map { audio($0) })])
        scripted.holdingCallbacks {
            var isHeard = [Int: Bool]()
            for change in 0..<100_000 {
                let stream = change % 8 + 1
                isHeard[stream] = !(isHeard[stream] ?? false)
                link.send(
                    isHeard[stream] == true
                        ? .audioHeard(participant: "ann", stream: stream)
                        : .audioUnheard(participant: "ann", stream: stream))
            }
            // An odd number of changes for the first stream alone.
            link.send(.audioHeard(participant: "ann", stream: 1))
        }
        #expect(scripted.heard == ["connected", "heard"])
        #expect(room.isConnected && room.getAudioOccupants() == ["ann"])
    }

    @Test func `a completion keeps its place among the events, and follows the end`() {
        scripted.join(with: [ParticipantInfo(id: "ann", streams: [video(7)])])
        link.answer { _ in .later }
        let listener = scripted.listener
        let note: @Sendable (Result<Void, any Error>) -> Void = { _ in
            listener.onError(code: 7, message: "completion", isCritical: false)
        }
        room.subscribe(videoId: 7, completion: note)
        room.unsubscribe(videoId: 7, completion: note)
        scripted.holdingCallbacks {
            link.send(.streamPublished(participant: "ann", video(8)))
            link.answerNext()
            link.send(.streamPublished(participant: "ann", video(9)))
            link.send(.ended(.destroyed, nil))
            link.answerNext(with: .failure(RoomError(.roomReleased, "The room is over.")))
        }
        #expect(scripted.heard == ["connected", "video", "error", "video", "disconnected", "error"])
    }

    // MARK: - Subscribing

    @Test func `a video is subscribed when the server agrees, and the room's end ends it`() async throws {
        scripted.join(with: [ParticipantInfo(id: "ann", streams: [video(7)])])
        let video = try #require(room.remoteParticipants["ann"]?.videos[7])
        try await room.subscribe(videoId: 7).get()
        #expect(video.isSubscribed && room.getVideoOccupants() == ["ann"])
        try await room.unsubscribe(videoId: 7).get()
        #expect(!video.isSubscribed && room.getVideoOccupants().isEmpty)
        try await room.subscribe(videoId: 7).get()
        link.send(.ended(.destroyed, nil))
        #expect(!video.isSubscribed)
    }

    @Test func `onError reports the failures of several subscriptions, and the result that of one`() async throws {
        scripted.join(with: [ParticipantInfo(id: "ann", streams: [video(7), video(9)])])
        link.answer { call in
            if case .subscribe(9, _) = call { return .failure(RoomError(.receiversExhausted, "All are in use.")) }
            return .success
        }
        room.subscribe(videoIds: [7, 8, 9])
        #expect(scripted.errors == [1328, 1322])
        let refused = await room.subscribe(videoId: 9)
        #expect(refused.failure?.code == 1322)
        #expect(scripted.errors == [1328, 1322])
        #expect(room.remoteParticipants["ann"]?.videos[7]?.isSubscribed == true)
        #expect(room.remoteParticipants["ann"]?.videos[9]?.isSubscribed == false)
    }

    @Test func `the completion of a subscription follows the end of its room`() {
        scripted.join(with: [ParticipantInfo(id: "ann", streams: [video(7)])])
        link.answer { _ in .later }
        let order = Mutex<[String]>([])
        scripted.listener.react { event in order.withLock { $0.append(event.name) } }
        room.subscribe(videoId: 7) { result in
            order.withLock { $0.append("completed \(result.failure?.code ?? 0)") }
        }
        link.send(.ended(.disconnected, lost))
        link.answerNext(with: .failure(lost))
        _ = scripted.heard
        #expect(order.withLock { $0.suffix(3) } == ["error", "disconnected", "completed 1329"])
    }

    @Test func `a video that the server does not grant again is an error, and not subscribed any longer`() async throws
    {
        scripted.join(with: [ParticipantInfo(id: "ann", streams: [video(7)])])
        let video = try #require(room.remoteParticipants["ann"]?.videos[7])
        try await room.subscribe(videoId: 7).get()
        try video.setPaused(true)
        link.send(
            .subscriptionEnded(participant: "ann", stream: 7, RoomError(.receiversExhausted, "All are in use.")))
        #expect(scripted.errors == [1322])
        #expect(!video.isSubscribed && !video.pause && room.getVideoOccupants().isEmpty)
        try await room.subscribe(videoId: 7).get()
        #expect(video.isSubscribed && link.calls.last == .subscribe(7, StreamView()))
    }

    @Test func `the quality of a video that is no longer subscribed is not reported`() async throws {
        scripted.join(with: [ParticipantInfo(id: "ann", streams: [video(7)])])
        let video = try #require(room.remoteParticipants["ann"]?.videos[7])
        try await room.subscribe(videoId: 7).get()
        link.send(.qualityChanged(participant: "ann", stream: 7, .init(cause: .view)))
        _ = scripted.heard
        #expect(video.limitation?.cause == .view)
        try await room.unsubscribe(videoId: 7).get()
        link.send(.qualityChanged(participant: "ann", stream: 7, .init(cause: .link(bitsPerSecond: 1))))
        _ = scripted.heard
        #expect(video.limitation == nil)
    }
}

extension Result<Void, any Error> {
    fileprivate var failure: ConnectLiveError? {
        if case .failure(let error) = self { error as? ConnectLiveError } else { nil }
    }
}

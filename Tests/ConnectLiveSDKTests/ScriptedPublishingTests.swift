import ConnectLiveSDK
import RTP
import RoomProtocol
import Testing
import TestSupport

@testable import ClientCore
@testable import ConnectLiveSDK
@testable import RoomClient

/// Publishing and unpublishing in a room on a scripted link. The server's reply comes on a task of the room.
@Suite(.timeLimit(.minutes(1))) struct ScriptedPublishingTests {
    private let scripted = ScriptedRoom()
    private let media = ConnectLive.createLocalMedia(MediaRequest.testPattern(frames: 0))
    private let refusal = RoomError(.publishRefused, "The server has no place.")
    private var room: any Room { scripted.room }
    private var link: ScriptedLink { scripted.link }

    private func waitFor(_ names: [String]) async throws {
        try await requireEventually("\(names)") { scripted.heard == names }
    }

    private func waitForCall(_ call: ScriptedLink.Call) async throws {
        try await requireEventually("\(call)") { link.calls.contains(call) }
    }

    @Test func `media that was published before connecting is published when the room is connected`() async throws {
        try room.publish(media)
        room.connect(roomId: "scripted")
        #expect(link.calls == [.connect("scripted")])
        link.send(.connected(participant: "me", others: []))
        try await waitFor(["connected", "localPublished"])
        #expect(link.calls == [.connect("scripted"), .publish])
        #expect(room.localParticipant.videos[1] === media.video && room.localParticipant.audios[2] === media.audio)
        #expect(media.video.id == 1 && media.audio.id == 2 && media.video.owner == "me")
    }

    @Test func `media is recorded only if the application asks for it, and again only if it asks again`() async throws {
        scripted.join()
        try room.publish(media, true)
        try await waitFor(["connected", "localPublished"])
        room.unpublish(media)
        try await waitFor(["connected", "localPublished", "localUnpublished"])
        try room.publish(media)
        try await requireEventually("the second publication") { link.recorded.count == 2 }
        #expect(link.recorded == [true, false])
    }

    @Test func `a room takes media once, and not at all when it has ended`() throws {
        scripted.join()
        try room.publish(media)
        #expect(throws: ConnectLiveError.error(1441, "")) { try publishWithoutMessage(media) }
        #expect(throws: ConnectLiveError.error(1311, "")) { try publishWithoutMessage(nil) }
        link.send(.ended(.destroyed, nil))
        #expect(throws: ConnectLiveError.error(1302, "")) { try publishWithoutMessage(media) }
    }

    private func publishWithoutMessage(_ media: (any LocalMedia)?) throws {
        do {
            try room.publish(media)
        } catch let error as ConnectLiveError {
            throw ConnectLiveError.error(error.code, "")
        }
    }

    @Test func `a refused publish is an error, and can be tried again`() async throws {
        link.answer { [refusal] call in if call == .publish { .failure(refusal) } else { .success } }
        scripted.join()
        try room.publish(media)
        try await waitFor(["connected", "error"])
        #expect(scripted.errors == [1441] && room.localParticipant.videos.isEmpty)
        link.answer { _ in .success }
        try room.publish(media)
        try await waitFor(["connected", "error", "localPublished"])
    }

    @Test func `published media is unpublished, and can be published again`() async throws {
        scripted.join()
        try room.publish(media)
        try await waitFor(["connected", "localPublished"])
        room.unpublish(media)
        #expect(scripted.heard == ["connected", "localPublished", "localUnpublished"])
        #expect(link.calls.last == .unpublish([1, 2]))
        #expect(media.video.id == 0 && room.localParticipant.videos.isEmpty && room.localParticipant.audios.isEmpty)
        try room.publish(media)
        try await waitFor(["connected", "localPublished", "localUnpublished", "localPublished"])
        #expect(media.video.id == 3)
    }

    @Test func `media that waits for the connection can be unpublished, and published again`() async throws {
        try room.publish(media)
        room.unpublish(media)
        scripted.join()
        #expect(scripted.heard == ["localUnpublished", "connected"])
        try room.publish(media)
        try await waitFor(["localUnpublished", "connected", "localPublished"])
        #expect(link.calls == [.connect("scripted"), .publish])
    }

    @Test func `media can be unpublished while it is being published`() async throws {
        link.answer { call in if call == .publish { .later } else { .success } }
        scripted.join()
        try room.publish(media)
        try await waitForCall(.publish)
        room.unpublish(media)
        #expect(scripted.heard == ["connected"])
        link.answerNext()
        try await waitFor(["connected", "localUnpublished"])
        #expect(link.calls == [.connect("scripted"), .publish])
    }

    @Test func `media that was unpublished while it was being published can be published again at once`() async throws {
        link.answer { call in if call == .publish { .later } else { .success } }
        scripted.join()
        try room.publish(media)
        try await waitForCall(.publish)
        room.unpublish(media)
        try room.publish(media)
        #expect(throws: ConnectLiveError.self) { try room.publish(media) }
        room.unpublish(media)
        try room.publish(media)
        link.answer { _ in .success }
        link.answerNext()
        try await waitFor(["connected", "localUnpublished", "localPublished"])
        #expect(link.calls == [.connect("scripted"), .publish, .publish])
    }

    @Test func `a room that is being left takes no media, also none that was unpublished before`() async throws {
        link.answer { call in if call == .publish { .later } else { .success } }
        scripted.join()
        try room.publish(media)
        try await waitForCall(.publish)
        #expect(throws: ConnectLiveError.error(1441, "")) { try publishWithoutMessage(media) }
        room.unpublish(media)
        room.disconnect()
        #expect(throws: ConnectLiveError.error(1302, "")) { try publishWithoutMessage(media) }
        link.answerNext()
        link.send(.ended(.disconnected, nil))
        #expect(scripted.heard == ["connected", "disconnected"])
    }

    @Test func `a room does not unpublish what it does not publish`() {
        room.unpublish(nil)
        room.unpublish(media)
        #expect(scripted.errors == [1311, 1311] && scripted.heard.count == 2)
    }

    @Test func `media of a room that has ended is not an error to unpublish`() async throws {
        scripted.join()
        try room.publish(media)
        try await waitFor(["connected", "localPublished"])
        link.send(.ended(.destroyed, nil))
        room.unpublish(media)
        #expect(scripted.heard == ["connected", "localPublished", "disconnected"])
        #expect(media.video.id == 0)
    }

    @Test func `media whose unpublish is refused stays published`() async throws {
        scripted.join()
        try room.publish(media)
        try await waitFor(["connected", "localPublished"])
        link.answer { [refusal] _ in .failure(refusal) }
        room.unpublish(media)
        #expect(scripted.heard == ["connected", "localPublished", "error"])
        #expect(room.localParticipant.videos[1] === media.video)
        link.answer { _ in .success }
        room.unpublish(media)
        #expect(scripted.heard == ["connected", "localPublished", "error", "localUnpublished"])
    }

    @Test func `an unpublish that the end of the room fails is no error`() async throws {
        scripted.join()
        try room.publish(media)
        try await waitFor(["connected", "localPublished"])
        link.answer { _ in .later }
        room.unpublish(media)
        link.send(.ended(.destroyed, nil))
        link.answerNext(with: .failure(RoomError(.roomReleased, "The room is over.")))
        #expect(scripted.heard == ["connected", "localPublished", "disconnected"])
    }

    @Test func `a room that ends while media is being published leaves the media free for another`() async throws {
        link.answer { call in if call == .publish { .later } else { .success } }
        scripted.join()
        try room.publish(media)
        try await waitForCall(.publish)
        link.send(.ended(.destroyed, nil))
        link.answerNext(with: .failure(RoomError(.roomReleased, "The room is over.")))
        let other = ScriptedRoom()
        other.join()
        try other.room.publish(media)
        try await requireEventually("published") { other.heard == ["connected", "localPublished"] }
        #expect(scripted.heard == ["connected", "disconnected"])
    }

    @Test func `media has the ids of the room in which it was published last`() async throws {
        let other = ScriptedRoom()
        scripted.join()
        other.room.connect(roomId: "other")
        other.link.send(.connected(participant: "I", others: []))
        try room.publish(media)
        try await waitFor(["connected", "localPublished"])
        try other.room.publish(media)
        try await requireEventually("published") { other.heard == ["connected", "localPublished"] }
        #expect(media.video.owner == "I")
        other.link.send(.ended(.destroyed, nil))
        #expect(media.video.owner == "me" && media.video.id == 1)
    }

    @Test func `after a rejoin, media has the ids of the new participant`() async throws {
        scripted.join()
        try room.publish(media)
        try await waitFor(["connected", "localPublished"])
        link.send(.reconnecting(attempt: 1, RoomError(.connectionLost, "The server is lost.")))
        link.send(.republished(participant: "me again", [1: 11, 2: 12]))
        link.send(.reconnected(Return(kind: .rejoined(participant: "me again"), duration: .seconds(40))))
        #expect(scripted.heard == ["connected", "localPublished", "reconnecting", "reconnected"])
        #expect(room.localParticipant.id == "me again" && media.video.owner == "me again")
        #expect(room.localParticipant.videos.keys.sorted() == [11] && media.audio.id == 12)
        room.unpublish(media)
        #expect(link.calls.last == .unpublish([11, 12]))
    }
}

import Dispatch
import RoomProtocol
import TestSupport
import Testing

@testable import ClientCore
@testable import ConnectLiveSDK
@testable import RoomClient

/// The events of a room as a sequence, on a scripted link.
@Suite(.timeLimit(.minutes(1))) struct RoomEventsTests {
    private let scripted = ScriptedRoom()
    private var link: ScriptedLink { scripted.link }

    /// The names of all events until the end.
    private func names(_ events: RoomEvents) async -> [String] {
        var names: [String] = []
        for await event in events { names.append(String("\(event)".prefix { $0 != "(" })) }
        return names
    }

    @Test func `several loops and the delegate get the same events, up to the end`() async {
        let (first, second) = (scripted.room.events, scripted.room.events)
        scripted.join()
        let third = scripted.room.events
        link.send(.participantEntered(ParticipantInfo(id: "ann", streams: [])))
        link.send(.participantLeft(ParticipantInfo(id: "ann", streams: [])))
        link.send(.ended(.disconnected, RoomError(.connectionLost, "The connection was lost.")))
        let later = ["participantEntered", "participantLeft", "error", "disconnected"]
        #expect(await names(first) == ["connected"] + later)
        #expect(await names(second) == ["connected"] + later)
        #expect(await names(third) == later)
        #expect(scripted.heard == ["connected", "entered", "left", "error", "disconnected"])
        #expect(await names(scripted.room.events) == [])
    }

    @Test func `a loop waits for the next event, with the parameters of the delegate's method`() async throws {
        let events = scripted.room.events
        let texts = Collected<String>()
        let loop = Task {
            for await event in events {
                switch event {
                case .connected(let ids): texts.append("connected \(ids)")
                case .userMessage(let sender, let message, let type): texts.append("\(sender): \(message) (\(type))")
                case .disconnected(let reason): texts.append("\(reason)")
                default: texts.append("\(event)")
                }
            }
        }
        scripted.join()
        try await requireEventually("connected") { texts.all == [#"connected ["me"]"#] }
        link.send(.userMessage(UserMessage(from: "ann", text: "hello", kind: "chat")))
        try await requireEventually("the message") { texts.all.last == "ann: hello (chat)" }
        scripted.room.disconnect()
        link.send(.ended(.disconnected, nil))
        await loop.value
        #expect(texts.all == [#"connected ["me"]"#, "ann: hello (chat)", "disconnected"])
    }

    @Test func `a room without a delegate reports its events`() async {
        let room = ConnectLive.createRoom()
        let events = room.events
        room.connect(roomId: "no name of a room")
        #expect(await names(events) == ["error", "disconnected"])
    }

    @Test func `events of a stream that wait become one, and opposite ones none`() async throws {
        let info = StreamInfo(id: 7, media: .audio, codec: "opus", attributes: StreamAttributes())
        scripted.join(with: [ParticipantInfo(id: "ann", streams: [info])])
        let events = scripted.room.events
        for state in [StreamState.waiting("microphone unplugged"), .live, .waiting("microphone off")] {
            link.send(.streamChanged(participant: "ann", info, StreamChange(state: state)))
            // One after another, so that they meet in the sequence, not in the queue of the callbacks.
            _ = scripted.heard
        }
        link.send(.audioHeard(participant: "ann", stream: 7))
        _ = scripted.heard
        link.send(.audioUnheard(participant: "ann", stream: 7))
        link.send(.ended(.destroyed, nil))
        #expect(scripted.heard.count { $0 == "audioChanged" } == 3)
        #expect(await names(events) == ["remoteAudioChanged", "disconnected"])
    }

    @Test func `a sequence that nobody reads ends with an error, and the room goes on`() async {
        scripted.join()
        let events = scripted.room.events
        for number in 0...DelegateQueue.capacity {
            link.send(.userMessage(UserMessage(from: "ann", text: "\(number)", kind: "chat")))
            if number % 1024 == 0 { _ = scripted.heard }
        }
        _ = scripted.heard
        let names = await names(events)
        #expect(names.count == DelegateQueue.capacity + 1 && names.last == "error")
        #expect(names.dropLast().allSatisfy { $0 == "userMessage" })
        #expect(scripted.room.isConnected && scripted.errors.isEmpty)
    }

    @Test func `a loop whose task is cancelled gets none of the events that wait`() async {
        let events = scripted.room.events
        scripted.join()
        link.send(.participantEntered(ParticipantInfo(id: "ann", streams: [])))
        _ = scripted.heard
        let loop = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await names(events)
        }
        #expect(await loop.value == [])
    }

    @Test func `of the events that wait when the application leaves, a loop gets none but the end`() async {
        let events = scripted.room.events
        scripted.join()
        link.send(.participantEntered(ParticipantInfo(id: "ann", streams: [])))
        _ = scripted.heard
        scripted.room.disconnect()
        link.send(.ended(.disconnected, nil))
        _ = scripted.heard
        // The end waits for the loop already.
        scripted.room.disconnect()
        #expect(await names(events) == ["disconnected"])
    }

    @Test func `a loop ends with its task, and with the room`() async throws {
        let events = scripted.room.events
        let (started, start) = AsyncStream<Void>.makeStream()
        let cancelled = Task {
            start.finish()
            return await names(events)
        }
        for await _ in started {}
        cancelled.cancel()
        #expect(await cancelled.value == [])
        var room: (any Room)? = RoomSession(delegate: nil, makeLink: { _ in link })
        let released = try #require(room?.events)
        room = nil
        #expect(await names(released) == [])
    }
}

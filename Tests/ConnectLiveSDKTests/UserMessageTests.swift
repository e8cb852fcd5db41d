import ConnectLiveSDK
import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import ClientCore
@testable import ConnectLiveSDK
@testable import RoomClient

/// Messages of applications in a room on a scripted link.
@Suite(.timeLimit(.minutes(1))) struct UserMessageTests {
    private let scripted = ScriptedRoom()
    private var room: any Room { scripted.room }
    private var link: ScriptedLink { scripted.link }

    @Test func `a message goes to the targets with its type, and the default one is normal`() async throws {
        scripted.join()
        let results = [
            await room.sendUserMessage(targets: ["ann", "bob"], message: "hi", type: "chat"),
            await room.sendUserMessage(targets: [], message: "all", type: ""),
            await room.sendUserMessage(targets: ["ann"], message: "plain"),
        ]
        for result in results { try result.get() }
        #expect(
            link.calls.dropFirst() == [
                .send(SendMessage(targets: ["ann", "bob"], text: "hi", kind: "chat")),
                .send(SendMessage(text: "all", kind: "normal")),
                .send(SendMessage(targets: ["ann"], text: "plain", kind: "normal")),
            ])
    }

    @Test func `completions come on the queue of callbacks, in order`() {
        scripted.join()
        let done = Mutex<[String]>([])
        scripted.holdingCallbacks {
            room.sendUserMessage(targets: [], message: "a", type: "chat") { _ in done.withLock { $0.append("a") } }
            room.sendUserMessage(targets: [], message: "b") { _ in done.withLock { $0.append("b") } }
            #expect(done.withLock { $0.isEmpty })
        }
        _ = scripted.heard
        #expect(done.withLock { $0 } == ["a", "b"])
    }

    @Test(arguments: [
        (RoomError(.connectionLost, "Lost."), 1471, "Lost. [1312]"),
        (RoomError(.tooManyRequests, "Later."), 1471, "Later. [server.too-many-requests]"),
        (RoomError(.userMessageTooLong, "Long."), 1471, "Long. [message.too-long]"),
        (RoomError(.userMessageReplyInvalid, "Odd."), 1475, "Odd."),
    ])
    func `a failure has one code, and its cause in the message`(cause: RoomError, code: Int, message: String) async {
        scripted.join()
        link.answer { call in if case .send = call { .failure(cause) } else { .success } }
        guard case .failure(let error) = await room.sendUserMessage(targets: [], message: "a") else {
            Issue.record("sent")
            return
        }
        #expect(error as? ConnectLiveError == .error(code, message))
        #expect(scripted.errors.isEmpty)
    }

    @Test func `a message of another participant is an event with its sender and type, and none follows disconnect`() {
        scripted.join()
        link.send(.userMessage(UserMessage(from: "ann", text: "hi", kind: "chat")))
        link.send(.problem(RoomError(.userMessageInvalid, "Unreadable.")))
        _ = scripted.heard
        let heard = scripted.listener.events.compactMap { event -> [String]? in
            if case .userMessage(let sender, let text, let type) = event { [sender, text, type] } else { nil }
        }
        #expect(heard == [["ann", "hi", "chat"]] && scripted.errors == [1486])
        scripted.holdingCallbacks {
            link.send(.userMessage(UserMessage(from: "ann", text: "late", kind: "chat")))
            room.disconnect()
        }
        #expect(!scripted.heard.suffix(1).contains("userMessage"))
    }

    /// Of an application that knows no types.
    private final class Older: RoomDelegate, Sendable {
        let texts = Mutex<[String]>([])

        func onConnected(participantIds: [String]) {}
        func onDisconnected(reason: DisconnectReason) {}
        func onError(code: Int, message: String, isCritical: Bool) {}
        func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
        func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
        func onUserMessage(senderId: String, message: String) {
            texts.withLock { $0.append("\(senderId): \(message)") }
        }
    }

    @Test func `a delegate without types gets messages of any type`() {
        let delegate: any RoomDelegate = Older()
        delegate.onUserMessage(senderId: "ann", message: "hi", type: "chat")
        #expect((delegate as? Older)?.texts.withLock { $0 } == ["ann: hi"])
    }
}

extension SDKTests {
    /// Messages in a room of a server.
    @Suite(.timeLimit(.minutes(1))) struct ServedMessages {
        @Test func `the others of a room get messages in their order`() async throws {
            try await onStage { _ in
                let (ada, grace) = (Client(), Client())
                _ = try await ada.join("messages")
                let ids = try await grace.join("messages")
                for number in 0..<5 {
                    let targets = number.isMultiple(of: 2) ? [] : [ids[0]]
                    try await ada.room.sendUserMessage(targets: targets, message: "\(number)", type: "count").get()
                }
                try await requireEventually("five") { grace.listener.names.filter { $0 == "userMessage" }.count == 5 }
                let heard = grace.listener.events.compactMap { event -> String? in
                    if case .userMessage(_, let text, "count") = event { text } else { nil }
                }
                #expect(heard == (0..<5).map(String.init))
                let long = await ada.room.sendUserMessage(targets: [], message: String(repeating: "x", count: 20_000))
                #expect(code(of: long) == 1471)
                #expect(!ada.listener.names.contains("userMessage"))
                for client in [ada, grace] { try await client.leave() }
                #expect(code(of: await ada.room.sendUserMessage(targets: [], message: "late")) == 1471)
            }
        }

        private func code(of result: Result<Void, any Error>) -> Int? {
            if case .failure(let error) = result { (error as? ConnectLiveError)?.code } else { nil }
        }
    }
}

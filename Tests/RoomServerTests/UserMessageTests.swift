import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

@Suite(.serialized) struct UserMessageTests {
    private struct Guest {
        let client: RawClient
        let id: String

        func send(_ message: SendMessage, id: Int) throws -> String? {
            try client.refusal(of: .message(message), id: id)
        }

        /// The next message of another participant.
        func hear() throws -> UserMessage? {
            let next = try client.message { if case .userMessage = $0.message { true } else { false } }
            if case .userMessage(let body) = next.message { return body }
            return nil
        }
    }

    private func guests(_ count: Int, _ server: RoomServer, _ token: String) throws -> [Guest] {
        try (0..<count).map { _ in
            let (client, me) = try join(server, token)
            return Guest(client: client, id: me.participant)
        }
    }

    @Test func `a message reaches all others, or those that it names, and never its sender`() async throws {
        try await withServer { server, grant in
            let guests = try guests(3, server, grant.accessToken)
            let (ada, grace, hopper) = (guests[0], guests[1], guests[2])
            let steps: [(SendMessage, [Guest])] = [
                (SendMessage(text: "to all"), [grace, hopper]),
                (SendMessage(targets: [hopper.id], text: "to one", kind: "secret"), [hopper]),
                (SendMessage(targets: [hopper.id, grace.id, hopper.id], text: "to two"), [grace, hopper]),
                (SendMessage(targets: [ada.id], text: "to oneself"), []),
                (SendMessage(targets: ["p-gone", ""], text: "to nobody"), []),
                (SendMessage(targets: ["p-gone", grace.id], text: "to a present one"), [grace]),
                (SendMessage(text: "", kind: ""), [grace, hopper]),
            ]
            for (index, (message, _)) in steps.enumerated() { #expect(try ada.send(message, id: 2 + index) == nil) }
            for guest in [grace, hopper] {
                for (message, receivers) in steps where receivers.contains(where: { $0.id == guest.id }) {
                    #expect(try guest.hear() == UserMessage(from: ada.id, text: message.text, kind: message.kind))
                }
            }
            // Its own ones would come before the answer.
            ada.client.sendMessage(.ping, id: 100)
            #expect(try ada.client.message { $0.id == 100 || $0.id == nil && !$0.message.isEntrance }.message == .pong)
        }
    }

    @Test func `a message that is too long or comes too soon is refused, and goes to nobody`() async throws {
        try await withServer { server, grant in
            let guests = try guests(2, server, grant.accessToken)
            let (ada, grace) = (guests[0], guests[1])
            let long = SendMessage(text: String(repeating: "x", count: 16 * 1024 + 1))
            #expect(try ada.send(long, id: 2) == "message.too-long")
            var (refusal, sent) = (String?.none, 0)
            while refusal == nil, sent < 1000 {
                sent += 1
                refusal = try ada.send(SendMessage(text: "\(sent)"), id: 10 + sent)
            }
            #expect(refusal == "server.too-many-requests" && sent > 20)
            for number in 1..<sent { #expect(try grace.hear()?.text == "\(number)") }
            // Each participant has a rate of its own.
            #expect(try grace.send(SendMessage(text: "the last"), id: 2) == nil)
            #expect(try ada.hear()?.text == "the last")
        }
    }
}

extension ServerMessage {
    fileprivate var isEntrance: Bool {
        switch self {
        case .participantEntered, .offer, .candidate, .receiverAssigned: true
        default: false
        }
    }
}

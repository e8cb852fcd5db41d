import Foundation
import Testing

@testable import RoomProtocol

@Suite struct MessageTests {
    @Test func `every client message survives the wire`() throws {
        let messages: [ClientMessage] = [
            .join(Join(token: "t", room: "kitchen", receivers: ReceiverPool(initial: 1, maximum: 2, growth: 1))),
            .publish(Publish(sdp: "v=0", streams: [.init(mid: "0", extraValue: "camera"), .init(mid: "1")])),
            .answer(Description(session: .down, sdp: "v=0", revision: 2)),
            .candidate(Candidate(session: .up, candidate: "")),
            .subscribe(StreamReference(stream: 3)), .unsubscribe(StreamReference(stream: 3)), .ping, .leave,
        ]
        for (id, message) in messages.enumerated() {
            let envelope = Envelope(id: id, message)
            #expect(try Envelope<ClientMessage>(json: Data(envelope.json().utf8)) == envelope)
        }
    }

    @Test func `every server message survives the wire`() throws {
        let stream = StreamInfo(id: 7, media: .video, codec: "VP8", extraValue: "")
        let problem = RoomError(.noSuchStream, "No.")
        let messages: [ServerMessage] = [
            .joined(Joined(version: 1, participant: "p", participants: [ParticipantInfo(id: "q", streams: [stream])])),
            .published(Published(sdp: "v=0", streams: [.init(mid: "0", stream: 7)])),
            .subscribed(Subscribed(stream: 7, mid: "4", firstSequenceNumber: 65535)),
            .unsubscribed(StreamReference(stream: 7)), .pong, .left,
            .error(Problem(problem)), .offer(Description(session: .down, sdp: "v=0", revision: 1)),
            .candidate(Candidate(session: .down, candidate: "candidate:1")),
            .participantEntered(ParticipantEntered(participant: ParticipantInfo(id: "q", streams: []))),
            .participantLeft(ParticipantReference(participant: "q")),
            .streamPublished(StreamPublished(participant: "q", stream: stream)),
            .receiverAssigned(
                ReceiverAssigned(mid: "0", media: .audio, stream: nil, participant: nil, codec: nil)),
            .closed(Closing(reason: .kicked, error: problem)),
        ]
        for message in messages {
            let envelope = Envelope(id: 9, message)
            #expect(try Envelope<ServerMessage>(json: Data(envelope.json().utf8)) == envelope)
        }
    }

    @Test func `fields that are not known are ignored`() throws {
        let json = #"{"type":"subscribe","id":3,"stream":5,"colour":"blue","nested":{"a":[1]}}"#
        #expect(
            try Envelope<ClientMessage>(json: Data(json.utf8))
                == Envelope(id: 3, .subscribe(StreamReference(stream: 5))))
    }

    @Test(arguments: [
        (#"{"type":"dance","id":4}"#, "protocol.unknown-message", 4),
        (#"{"type":"subscribe","id":5}"#, "protocol.malformed", 5),
        (#"{"type":"subscribe","id":6,"stream":"x"}"#, "protocol.malformed", 6),
        (#"{"id":7}"#, "protocol.malformed", nil),
        (#"[1,2]"#, "protocol.malformed", nil),
        ("", "protocol.malformed", nil),
        ("\u{0}", "protocol.malformed", nil),
    ])
    func `a message that cannot be taken is refused with the id of its request`(
        json: String, code: String, id: Int?
    ) {
        let refused = #expect(throws: MessageRefused.self) { try Envelope<ClientMessage>(json: Data(json.utf8)) }
        #expect(refused?.error.code.name == code)
        #expect(refused?.id == id)
    }

    @Test func `a room name that is refused comes back with one that would do`() throws {
        #expect(try RoomName("kitchen-1").text == "kitchen-1")
        for (name, remedy) in [("my room", "my-room"), ("a/b", "a-b")] {
            let error = #expect(throws: RoomError.self) { try RoomName(name) }
            #expect(error?.code == .roomNameInvalid)
            #expect(error?.message.contains(remedy) == true)
        }
        #expect(throws: RoomError.self) { try RoomName("") }
        #expect(throws: RoomError.self) { try RoomName(String(repeating: "a", count: 33)) }
    }
}

import Foundation
import Testing

@testable import RoomProtocol

@Suite struct MessageTests {
    @Test(arguments: [
        (#"{"type":"dance","id":4}"#, "protocol.unknown-message", 4),
        (#"{"type":"subscribe","id":5}"#, "protocol.malformed", 5),
        (#"{"type":"subscribe","id":6,"stream":"x"}"#, "protocol.malformed", 6),
        (#"{"id":7}"#, "protocol.malformed", nil),
        (#"[1,2]"#, "protocol.malformed", nil),
        ("", "protocol.malformed", nil),
        ("\u{0}", "protocol.malformed", nil),
    ])
    func `an invalid message is refused with the id of its request`(
        json: String, code: String, id: Int?
    ) {
        let refused = #expect(throws: MessageRefused.self) { try Envelope<ClientMessage>(json: Data(json.utf8)) }
        #expect(refused?.error.code.name == code)
        #expect(refused?.id == id)
    }

    @Test func `an error names a missing field with the object that lacks it`() {
        let json = #"{"type":"join","id":1,"version":1,"token":"t","room":"r","receivers":{"initial":9,"maximum":20}}"#
        let refused = #expect(throws: MessageRefused.self) { try Envelope<ClientMessage>(json: Data(json.utf8)) }
        #expect(refused?.error.message == "The message 'join' lacks the field 'receivers.growth'.")
    }

    @Test(
        arguments: [
            (nil, [1, 2], 1), ([1, 2, 3], [1, 2], 2), ([3, 2], [1, 2], 2), ([1], [1, 2], 1), ([2, 3], [1], nil),
            ([], [1], nil),
        ] as [([Int]?, [Int], Int?)])
    func `a connection uses the newest version that both ends have`(
        theirs: [Int]?, own: [Int], version: Int?
    ) throws {
        let join = Join(version: 1, versions: theirs, token: "t", room: "kitchen")
        guard let version else {
            let error = #expect(throws: RoomError.self) { try join.negotiatedVersion(with: own) }
            #expect(error?.code == .versionUnsupported)
            return
        }
        #expect(try join.negotiatedVersion(with: own) == version)
    }

    @Test func `a refused room name is returned with a valid one`() throws {
        #expect(try RoomName("kitchen-1").text == "kitchen-1")
        for (name, remedy) in [("my room", "my-room"), ("a/b", "a-b")] {
            let error = #expect(throws: RoomError.self) { try RoomName(name) }
            #expect(error?.code == .roomNameInvalid)
            #expect(error?.message.contains(remedy) == true)
        }
        #expect(throws: RoomError.self) { try RoomName("") }
        // A name within the limit of characters is not refused for its length in bytes.
        let korean = #expect(throws: RoomError.self) { try RoomName("가나다라마바사아자차카") }
        #expect(korean?.message.contains("only letters, digits and '-'") == true)
        #expect(throws: RoomError.self) { try RoomName(String(repeating: "a", count: 33)) }
    }
}

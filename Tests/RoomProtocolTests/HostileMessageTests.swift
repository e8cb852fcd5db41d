import Foundation
import Testing

@testable import RoomProtocol

/// Messages that no honest client sends. Each is refused with a code, or has one meaning; none is expensive.
@Suite struct HostileMessageTests {
    private func refusal(_ json: String) -> MessageRefused? {
        do throws(MessageRefused) {
            _ = try Envelope<ClientMessage>(json: Data(json.utf8))
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: ["[", #"{"a":"#])
    func `a message of nested brackets is refused`(open: String) {
        let room = Signalling.maximumMessageLength - 64
        let unclosed = #"{"type":"ping","id":1,"x":"# + String(repeating: open, count: room / open.utf8.count)
        #expect(refusal(unclosed)?.error.code == .messageMalformed)
        let close = open == "[" ? "]" : "}"
        let depth = room / (open.utf8.count + 1) - 1
        let closed =
            #"{"type":"ping","id":1,"x":"# + String(repeating: open, count: depth) + (open == "[" ? "" : "0")
            + String(repeating: close, count: depth) + "}"
        #expect(refusal(closed)?.error.code == .messageMalformed)
    }

    @Test func `a duplicate field has one value, the same for type, id and body`() throws {
        let json = #"{"type":"subscribe","type":"leave","id":1,"id":2,"stream":5,"stream":6}"#
        #expect(
            try Envelope<ClientMessage>(json: Data(json.utf8))
                == Envelope(id: 1, .subscribe(ViewOfStream(stream: 5))))
    }

    @Test(arguments: [
        "1e400", "-1e400", "9223372036854775808", "1.5", "true", #""1""#, String(repeating: "9", count: 100_000),
    ])
    func `a number that is not a 64-bit integer is refused, as an id and in a body`(number: String) {
        let stream = refusal(#"{"type":"subscribe","id":1,"stream":\#(number)}"#)
        #expect(stream?.error.code == .messageMalformed)
        #expect(stream?.id == 1)
        let id = refusal(#"{"type":"subscribe","id":\#(number),"stream":1}"#)
        #expect(id?.error.code == .messageMalformed)
        #expect(id?.id == nil)
    }

    @Test(arguments: [Int.min, -1, 0, Int.max])
    func `every 64-bit integer is valid as an id and a stream`(number: Int) throws {
        let envelope = Envelope<ClientMessage>(id: number, .unsubscribe(StreamReference(stream: number)))
        #expect(try Envelope<ClientMessage>(json: Data(envelope.json().utf8)) == envelope)
    }

    @Test(arguments: [Int.min, -1, Int.max])
    func `an impossible rate or size of a stream counts as unknown`(number: Int) throws {
        let json =
            #"{"type":"streamQuality","stream":7,"cause":"link","bitsPerSecond":\#(number),"width":\#(number),"#
            + #""height":\#(number),"fullWidth":\#(number),"fullHeight":\#(number)}"#
        #expect(
            try Envelope<ServerMessage>(json: Data(json.utf8))
                == Envelope(.streamQuality(StreamQuality(stream: 7, cause: .link))))
    }

    @Test func `text that is not Unicode is refused`() {
        #expect(refusal(#"{"type":"candidate","session":"up","candidate":"\ud800"}"#)?.error.code == .messageMalformed)
        let bytes = Data(#"{"type":"candidate","session":"up","candidate":""#.utf8) + [0xff, 0xfe] + Data(#""}"#.utf8)
        #expect(throws: MessageRefused.self) { try Envelope<ClientMessage>(json: bytes) }
    }

    @Test(arguments: [
        "\u{0}", "a\nb", "a\r", "\u{1b}[31mred", "\u{7f}", "\u{85}", "\u{2028}", "\u{202e}gnp.exe", "\u{2066}",
        String(repeating: "x", count: 129), String(repeating: "\u{1f4f7}", count: 33),
    ])
    func `a state's text that is long or acts on the text around it is refused, and shortened by its sender`(
        text: String
    ) throws {
        let error = #expect(throws: RoomError.self) { try StreamState.waiting(text).validate() }
        #expect(error?.code == .messageMalformed)
        #expect(error.map { $0.message.utf8.count < 200 } == true)
        try StreamState.waiting(shortening: text).validate()
    }

    @Test(arguments: ["", "camera unplugged", "카메라 없음", "\u{1f4f7}", String(repeating: "x", count: 128)])
    func `a state's text of one short line is accepted unchanged`(text: String) throws {
        try StreamState.waiting(text).validate()
        #expect(StreamState.waiting(shortening: text) == .waiting(text))
    }

    @Test(arguments: [#""text":7"#, #""text":{}"#, #""state":7"#, #""state":["waiting"]"#])
    func `a state of another type is refused`(field: String) {
        let state = field.hasPrefix(#""text"#) ? #""state":"waiting","# : ""
        let json = #"{"type":"setStreamState","id":1,"stream":1,\#(state)\#(field)}"#
        #expect(refusal(json)?.error.code == .messageMalformed)
    }

    @Test(arguments: [
        "\u{0}", "5\nfit", "\u{1b}[31m", "\u{202e}5", String(repeating: "x", count: 33),
        String(repeating: "\u{1f4f7}", count: 9),
    ])
    func `a sort that is long or acts on the text around it is refused`(sort: String) {
        let error = #expect(throws: RoomError.self) { try StreamChange(sort: sort).validate() }
        #expect(error?.code == .messageMalformed)
    }

    @Test func `an extraValue of more than 1024 bytes is refused, and any text up to that is not`() throws {
        let error = #expect(throws: RoomError.self) {
            try StreamChange(extraValue: String(repeating: "\u{1f4f7}", count: 257)).validate()
        }
        #expect(error?.code == .publishRefused)
        for text in ["", "\u{1}", String(repeating: "x", count: 1024)] {
            try StreamChange(extraValue: text).validate()
        }
    }

    @Test(arguments: [
        #""active":1"#, #""active":"no""#, #""alwaysOn":{}"#, #""sort":5"#, #""extraValue":[]"#, #""state":7"#,
    ])
    func `an attribute of another type is refused`(field: String) {
        let json = #"{"type":"setStream","id":1,"stream":1,\#(field)}"#
        #expect(refusal(json)?.error.code == .messageMalformed)
    }

    @Test(arguments: [
        SendMessage(text: String(repeating: "x", count: 16 * 1024 + 1)),
        SendMessage(text: String(repeating: "\u{1f4f7}", count: 4097)),
        SendMessage(text: "", kind: String(repeating: "x", count: 65)),
        SendMessage(targets: Array(repeating: "p", count: 257), text: ""),
    ])
    func `a message that is longer than its limits is refused`(message: SendMessage) {
        let error = #expect(throws: RoomError.self) { try message.validate() }
        #expect(error?.code == .userMessageTooLong)
    }

    @Test func `a message as long as its limits fits into one of the server, whatever its characters are`() throws {
        let text = String(repeating: "\u{1}", count: 32 * 1024 / 6)
        let kind = String(repeating: "\"", count: 64)
        try SendMessage(targets: Array(repeating: "p", count: 256), text: text, kind: kind).validate()
        let message = UserMessage(from: "p-0123456789abcdef", text: text, kind: kind)
        #expect(Envelope(ServerMessage.userMessage(message)).json().utf8.count < Signalling.maximumMessageLength)
    }

    @Test(arguments: [
        #"{"type":"userMessage","from":"p","text":"hi"}"#, #"{"type":"userMessage","from":7,"text":"hi","kind":"a"}"#,
    ])
    func `a message of the server that cannot be read has a code of its own`(json: String) {
        let error = #expect(throws: MessageRefused.self) { try Envelope<ServerMessage>(json: Data(json.utf8)) }
        #expect(error?.error.code == .userMessageInvalid)
    }

    @Test func `a refusal repeats only a little of the message`() {
        let long = String(repeating: "x", count: 100_000)
        for json in [#"{"type":"\#(long)"}"#, #"{"type":"candidate","session":"\#(long)","candidate":""}"#] {
            #expect(refusal(json).map { $0.error.message.utf8.count < 200 } == true)
        }
    }
}

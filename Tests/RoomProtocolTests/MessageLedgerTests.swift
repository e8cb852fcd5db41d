import RoomProtocol
import Testing

struct MessageLedgerTests {
    /// A ledger that `#expect` can change.
    private final class Ledger {
        private var ledger = MessageLedger<Int>()
        var unacknowledged: [Int] { ledger.unacknowledged }
        var isSettled: Bool { ledger.isSettled }
        var owesAcknowledgement: Bool { ledger.owesAcknowledgement }
        var isAcknowledgementDue: Bool { ledger.isAcknowledgementDue }
        func send(_ message: Int, length: Int, isDispensable: Bool = false) -> Bool {
            ledger.send(message, length: length, isDispensable: isDispensable)
        }
        func acknowledged(_ count: Int) -> Bool { ledger.acknowledged(count) }
        func receive(length: Int = 0) { ledger.receive(length: length) }
        func acknowledge() -> Acknowledgement { ledger.acknowledge() }
    }

    @Test func `messages are kept until the other end has them`() {
        let ledger = Ledger()
        for message in 1...5 { #expect(ledger.send(message, length: 10)) }
        #expect(ledger.acknowledged(2))
        #expect(ledger.unacknowledged == [3, 4, 5])
        // An acknowledgement again, as after a resume.
        #expect(ledger.acknowledged(2))
        #expect(ledger.acknowledged(5))
        #expect(ledger.isSettled)
    }

    @Test(arguments: [-1, 1, 6, Int.max, Int.min])
    func `an impossible number changes nothing`(count: Int) {
        let ledger = Ledger()
        for message in 1...5 { #expect(ledger.send(message, length: 10)) }
        #expect(ledger.acknowledged(2))
        #expect(!ledger.acknowledged(count))
        #expect(ledger.unacknowledged == [3, 4, 5])
    }

    @Test func `an acknowledgement is due after many messages or many bytes`() {
        for (messages, length) in [(256, 0), (2, 64 * 1024), (1, 1024 * 1024)] {
            let ledger = Ledger()
            for _ in 1..<messages { ledger.receive(length: length) }
            #expect(!ledger.isAcknowledgementDue)
            ledger.receive(length: length)
            #expect(ledger.isAcknowledgementDue)
            #expect(ledger.acknowledge().received == messages && !ledger.isAcknowledgementDue)
            ledger.receive(length: 1)
            #expect(!ledger.isAcknowledgementDue)
        }
    }

    @Test func `the number and the bytes of kept messages are limited`() {
        let many = Ledger()
        for message in 0..<MessageLedger<Int>.countLimit { #expect(many.send(message, length: 0)) }
        #expect(!many.send(0, length: 0))
        let long = Ledger()
        for _ in 0..<3 { #expect(long.send(0, length: 256 * 1024)) }
        #expect(!long.send(0, length: 256 * 1024))
        // An acknowledgement makes room.
        #expect(long.acknowledged(1))
        #expect(long.send(0, length: 256 * 1024))
    }

    @Test func `messages that a connection can do without leave half of the place to the others`() {
        let long = Ledger()
        #expect(long.send(0, length: 256 * 1024, isDispensable: true))
        #expect(!long.send(0, length: 256 * 1024, isDispensable: true))
        for _ in 0..<2 { #expect(long.send(0, length: 256 * 1024)) }
        #expect(!long.send(0, length: 0, isDispensable: true))
        let many = Ledger()
        for _ in 0..<MessageLedger<Int>.countLimit / 2 { #expect(many.send(0, length: 0, isDispensable: true)) }
        #expect(!many.send(0, length: 0, isDispensable: true) && many.send(0, length: 0))
    }

    @Test(arguments: ["plain", "\u{1}\u{1f}\u{7f}", "\"\\/", "\r\n\t", "äß🙂\u{2028}", ""])
    func `a message counts with at least the bytes of its text in JSON`(part: String) {
        let text = String(repeating: part, count: 100)
        for message in [
            ServerMessage.userMessage(UserMessage(from: "", text: text, kind: "")),
            .offer(Description(session: .down, sdp: text, revision: 1)),
            .streamChanged(
                StreamChanged(participant: "", stream: 1, state: .live, change: StreamChange(extraValue: text))),
        ] {
            #expect(Envelope(message).json().utf8.count <= message.textLength + 128)
        }
    }

    @Test func `a text of control characters may take 32 KiB in JSON`() throws {
        try SendMessage(text: String(repeating: "\u{1}", count: 5461)).validate()
        try SendMessage(text: String(repeating: "\"", count: 16 * 1024)).validate()
        let refusal = #expect(throws: RoomError.self) {
            try SendMessage(text: String(repeating: "\u{1}", count: 5462)).validate()
        }
        #expect(refusal?.code == .userMessageTooLong)
    }

    @Test func `an acknowledgement is owed for new messages, and due after many`() {
        let ledger = Ledger()
        #expect(!ledger.owesAcknowledgement)
        for _ in 0..<MessageLedger<Int>.acknowledgedAfter {
            #expect(!ledger.isAcknowledgementDue)
            ledger.receive()
        }
        #expect(ledger.owesAcknowledgement && ledger.isAcknowledgementDue)
        #expect(ledger.acknowledge().received == MessageLedger<Int>.acknowledgedAfter)
        #expect(!ledger.owesAcknowledgement && !ledger.isAcknowledgementDue)
    }
}

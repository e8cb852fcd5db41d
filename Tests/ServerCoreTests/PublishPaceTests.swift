import PeerLoop
import RTP
import Testing

@testable import RoomProtocol
@testable import ServerCore

@Suite struct PublishPaceTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)

    @Test func `a participant publishes a burst, then two streams a second`() throws {
        var pace = RequestPace.publications
        for _ in 0..<4 { try pace.admit(16, now: start) }
        let refusal = #expect(throws: RoomError.self) { try pace.admit(1, now: start) }
        #expect(refusal?.code == .tooManyRequests)
        #expect(throws: RoomError.self) { try pace.admit(2, now: start + .milliseconds(900)) }
        try pace.admit(1, now: start + .milliseconds(900))
        try pace.admit(1, now: start + .seconds(1))
        #expect(throws: RoomError.self) { try pace.admit(1, now: start + .milliseconds(1400)) }
    }

    @Test func `a participant changes its streams twenty times at once, then twice a second`() throws {
        var pace = RequestPace.changes
        for _ in 0..<20 { try pace.admit(now: start) }
        let refusal = #expect(throws: RoomError.self) { try pace.admit(now: start + .milliseconds(499)) }
        #expect(refusal?.code == .tooManyRequests)
        try pace.admit(now: start + .milliseconds(500))
        #expect(throws: RoomError.self) { try pace.admit(now: start + .milliseconds(999)) }
    }

    @Test func `a participant sends twenty messages at once, then ten a second`() throws {
        var pace = MessagePace()
        let message = SendMessage(text: "hi")
        for _ in 0..<20 { try pace.admit(message, now: start) }
        let refusal = #expect(throws: RoomError.self) { try pace.admit(message, now: start + .milliseconds(99)) }
        #expect(refusal?.code == .tooManyRequests)
        for tenth in 1...20 as ClosedRange<Int64> { try pace.admit(message, now: start + .milliseconds(100 * tenth)) }
        #expect(throws: RoomError.self) { try pace.admit(message, now: start + .milliseconds(2099)) }
    }

    @Test func `a participant sends 64 KiB at once, then 16 KiB a second`() throws {
        var pace = MessagePace()
        let message = SendMessage(text: String(repeating: "x", count: 16 * 1024 - 6))
        for _ in 0..<4 { try pace.admit(message, now: start) }
        #expect(throws: RoomError.self) { try pace.admit(message, now: start + .milliseconds(999)) }
        for second in 1...4 as ClosedRange<Int64> { try pace.admit(message, now: start + .seconds(second)) }
        // A refused message does not count.
        for _ in 0..<40 { #expect(throws: RoomError.self) { try pace.admit(message, now: start + .seconds(4)) } }
        try pace.admit(message, now: start + .seconds(5))
    }

    @Test func `a message counts with its bytes in JSON`() throws {
        for (text, count) in [("x", 4), ("\"", 2), ("\u{1}", 2)] {
            var pace = MessagePace()
            let length = text == "\u{1}" ? 5 * 1024 : 16 * 1024 - 6
            let message = SendMessage(text: String(repeating: text, count: length))
            for _ in 0..<count { try pace.admit(message, now: start) }
            #expect(throws: RoomError.self) { try pace.admit(message, now: start) }
        }
    }

    @Test func `the participants of a room send 192 KiB at once, then 125 KiB a second`() throws {
        var pace = RoomPace.messages
        for _ in 0..<12 {
            try pace.check([16 * 1024 - 128], "send", now: start)
            pace.count(16 * 1024 - 128, now: start)
        }
        let refusal = #expect(throws: RoomError.self) { try pace.check([0], "send", now: start) }
        #expect(refusal?.code == .tooManyRequests)
        try pace.check([125 * 1000 - 128], "send", now: start + .seconds(1))
        #expect(throws: RoomError.self) { try pace.check([126 * 1024], "send", now: start + .seconds(1)) }
    }

    /// A client that is away for 30 s must be able to come back, whatever others publish meanwhile.
    @Test func `announcements of a room in 30 s fit into the ledger of a client that is away`() {
        var pace = RoomPace.announcements
        var ledger = MessageLedger<Int>()
        let length = 6 * 1024
        for step in 0..<30_000 as Range<Int64> {
            let now = start + .milliseconds(step)
            guard (try? pace.check([length], "publish", now: now)) != nil else { continue }
            pace.count(length, now: now)
            // It ends, too.
            pace.count(0, reserve: RoomPace.reservedKibibytes, now: now)
            let hasRoom = ledger.send(0, length: length) && ledger.send(0, length: 0)
            guard hasRoom else { return #expect(Bool(false), "full after \(step) ms") }
        }
        #expect(ledger.unacknowledged.count > 150)
    }

    @Test func `changes of texts leave announcements to new streams`() throws {
        var pace = RoomPace.announcements
        for _ in 0..<(896 - 224) { pace.count(1024 - 128, now: start) }
        #expect(throws: RoomError.self) { try pace.check([1], reserve: 224, "change", now: start) }
        try pace.check([200 * 1024], "publish", now: start)
    }

    @Test func `however many changes are never refused, streams are still published`() throws {
        let (loop, other) = (Loop(now: start), PartID(loop: 1, number: 1))
        let room = try partOfRoom(informedBy: other, on: loop)
        func change(_ number: Int) {
            let change = StreamChange(isActive: !number.isMultiple(of: 2))
            room.receive(PipeBatch(room: room.name, from: other, to: nil, [.changed(7, change, by: "p-1")]))
        }
        // As 100 participants that mute and unmute for ten minutes.
        for number in 0..<120_000 {
            loop.now = start + .milliseconds(Int64(number) * 5)
            change(number)
        }
        let texts = StreamAttributes(extraValue: String(repeating: "x", count: 1000))
        try room.admit(Publish(sdp: "", streams: (0..<16).map { Publish.Stream(mid: "\($0)", attributes: texts) }))
    }

    @Test func `events beyond the burst delay no later ones`() {
        var pace = Pace(burst: 3, interval: .seconds(2))
        pace.count(1000, now: start)
        #expect(pace.delay(now: start) == .seconds(2))
        #expect(pace.delay(now: start + .seconds(2)) == nil)
    }

    @Test func `1000 participants publish two streams at once`() throws {
        var pace = RoomPace.announcements
        for _ in 0..<1000 {
            try pace.check([16, 16], "publish", now: start)
            for _ in 0..<2 { pace.count(16, now: start) }
        }
    }

    @Test func `a burst is available again after half a minute`() throws {
        var pace = RequestPace.publications
        for second in [0, 32, 640] as [Int64] {
            for _ in 0..<4 { try pace.admit(16, now: start + .seconds(second)) }
            #expect(throws: RoomError.self) { try pace.admit(1, now: start + .seconds(second)) }
        }
    }
}

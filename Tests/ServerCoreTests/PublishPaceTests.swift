import RTP
import Testing

@testable import RoomProtocol
@testable import ServerCore

@Suite struct PublishPaceTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)

    @Test func `a participant publishes a burst, then two streams a second`() throws {
        var pace = PublishPace()
        for _ in 0..<4 { try pace.admit(16, now: start) }
        let refusal = #expect(throws: RoomError.self) { try pace.admit(1, now: start) }
        #expect(refusal?.code == .tooManyRequests)
        #expect(throws: RoomError.self) { try pace.admit(2, now: start + .milliseconds(900)) }
        try pace.admit(1, now: start + .milliseconds(900))
        try pace.admit(1, now: start + .seconds(1))
        #expect(throws: RoomError.self) { try pace.admit(1, now: start + .milliseconds(1400)) }
    }

    @Test func `a stream changes ten times at once, then once a second`() throws {
        var pace = ChangePace()
        for _ in 0..<10 { try pace.admit(now: start) }
        let refusal = #expect(throws: RoomError.self) { try pace.admit(now: start + .milliseconds(999)) }
        #expect(refusal?.code == .tooManyRequests)
        try pace.admit(now: start + .seconds(1))
        #expect(throws: RoomError.self) { try pace.admit(now: start + .milliseconds(1999)) }
    }

    @Test func `a burst is available again after half a minute`() throws {
        var pace = PublishPace()
        for second in [0, 32, 640] as [Int64] {
            for _ in 0..<4 { try pace.admit(16, now: start + .seconds(second)) }
            #expect(throws: RoomError.self) { try pace.admit(1, now: start + .seconds(second)) }
        }
    }
}

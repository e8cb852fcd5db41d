import RTP
import RoomProtocol
import Testing

@testable import ClientCore
@testable import RoomClient

@Suite struct ConnectionNewsTests {
    @Test func `a loss is reported once, with its cause and without the advice that the client follows itself`() {
        var news = ConnectionNews(.seconds(30))
        let cut = RoomError(.connectionLost, "The server is silent. Connect again when it is reachable.")
        #expect(
            news.sentence(about: .reconnecting(attempt: 1, cut))
                == "The connection to the server is lost; trying again for 30 s. (The server is silent.)")
        #expect(news.sentence(about: .reconnecting(attempt: 2, cut)) == nil)
        let resumed = Return(kind: .resumed, duration: .milliseconds(2340))
        #expect(news.sentence(about: .reconnected(resumed)) == "Back after 2.3 s.")
        let stopped = RoomError(.roomReleased, "The server is shutting down. Join the room again when it runs.")
        #expect(
            news.sentence(about: .reconnecting(attempt: 1, stopped))
                == "The connection to the server is lost; trying again for 30 s. (The server is shutting down.)")
        let rejoined = Return(kind: .rejoined(participant: "p-2"), duration: .seconds(40))
        #expect(news.sentence(about: .reconnected(rejoined)) == "Back after 40.0 s, as another participant.")
    }

    @Test func `media that does not flow is told for its direction`() {
        var news = ConnectionNews(.unlimited)
        #expect(
            news.sentence(about: .mediaInterrupted(isOutgoing: true, seconds: 5.2))
                == "Nothing has reached the room for 5 s; trying again.")
        #expect(
            news.sentence(about: .mediaInterrupted(isOutgoing: false, seconds: 5))
                == "Nothing has arrived from the room for 5 s; trying again.")
        #expect(news.sentence(about: .mediaRestored(seconds: 7.06)) == "Media flows again after 7.1 s.")
        #expect(
            news.sentence(about: .mediaInterrupted(isOutgoing: true, seconds: 3, relay: "192.0.2.1:3478"))
                == "Nothing has reached the room through the TURN server 192.0.2.1:3478 for 3 s; trying again.")
    }

    @Test func `an outage has one clock, from the end of media to the return of the server`() {
        var news = ConnectionNews(.seconds(30))
        let begin = ContinuousClock.now
        #expect(news.outage(now: begin) == nil)
        _ = news.interrupted(isOutgoing: false, seconds: 3, now: begin)
        #expect(news.outage(now: begin + .seconds(2)) == "nothing has arrived from the room for 5 s")
        _ = news.lost(because: "", now: begin + .seconds(6))
        #expect(news.outage(now: begin + .seconds(7)) == "the server has been lost for 1 s")
        #expect(news.back(after: 4, wasResumed: true, now: begin + .seconds(10)) == "Back after 13.0 s.")
        #expect(news.restored(after: 14, now: begin + .seconds(11)) == nil)
        #expect(news.outage(now: begin + .seconds(11)) == nil)
        // Media that comes much later is news.
        _ = news.interrupted(isOutgoing: false, seconds: 3, now: begin)
        _ = news.back(after: 4, wasResumed: true, now: begin + .seconds(10))
        #expect(news.restored(after: 17, now: begin + .seconds(14)) == "Media flows again after 17.0 s.")
        // An outage of the server alone.
        _ = news.lost(because: "", now: begin + .seconds(20))
        #expect(news.back(after: 2, wasResumed: true, now: begin + .seconds(22)) == "Back after 2.0 s.")
        #expect(news.sentence(about: .participantLeft(ParticipantInfo(id: "p-1", streams: []))) == nil)
    }
}

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
        #expect(news.sentence(about: .participantLeft(ParticipantInfo(id: "p-1", streams: []))) == nil)
    }
}

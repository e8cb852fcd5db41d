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
        #expect(news.sentence(about: .reconnected(resumed)) == "The server is back after 2.3 s.")
        let stopped = RoomError(.roomReleased, "The server is shutting down. Join the room again when it runs.")
        #expect(
            news.sentence(about: .reconnecting(attempt: 1, stopped))
                == "The connection to the server is lost; trying again for 30 s. (The server is shutting down.)")
        let rejoined = Return(kind: .rejoined(participant: "p-2"), duration: .seconds(40))
        #expect(
            news.sentence(about: .reconnected(rejoined))
                == "Back in the room after 40.0 s, as another participant: p-2.")
    }

    @Test func `while the server is lost, media that does not flow either is no news`() {
        var news = ConnectionNews(.seconds(30))
        let begin = ContinuousClock.now
        _ = news.lost(because: "The server was stopped.", now: begin)
        #expect(
            news.interrupted(MediaInterruption(isOutgoing: true, seconds: 2.5), now: begin + .seconds(2.5)) == nil)
        #expect(news.outage(now: begin + .seconds(4)) == "the server has been lost for 4 s")
        #expect(news.back(after: 6, now: begin + .seconds(6)) == "The server is back after 6.0 s; media follows.")
        #expect(news.restored(after: 6.2, now: begin + .seconds(6.2)) == nil)
    }

    private static func interruption(_ isOutgoing: Bool, _ seconds: Double, via relay: String? = nil)
        -> MediaInterruption
    {
        var interruption = MediaInterruption(isOutgoing: isOutgoing, seconds: seconds)
        interruption.way = .init(local: relay == nil ? .host : .relay, remote: .host, transport: "UDP", relay: relay)
        return interruption
    }

    @Test func `media that does not flow is told for its direction and its way`() {
        var news = ConnectionNews(.unlimited)
        #expect(
            news.sentence(about: .mediaInterrupted(Self.interruption(true, 5.2)))
                == "Nothing has reached the room directly over UDP for 5 s; trying again.")
        #expect(
            news.sentence(about: .mediaInterrupted(Self.interruption(false, 5)))
                == "Nothing has arrived from the room directly over UDP for 5 s; trying again.")
        let same = Self.interruption(false, 5).way
        #expect(news.sentence(about: .mediaRestored(seconds: 7.06, way: same)) == "Media flows again after 7.1 s.")
        #expect(news.sentence(about: .mediaRestored(seconds: 2.26)) == "Media was interrupted for 2.3 s.")
    }

    @Test func `while the server answers, a line names the way that was lost, those that are tried, and the new one`() {
        var news = ConnectionNews(.seconds(120))
        var interruption = Self.interruption(true, 2.9, via: "192.0.2.1:3478")
        interruption.isServerThere = true
        interruption.relays = ["192.0.2.1:3478", "turn.example.org:443"]
        #expect(
            news.sentence(about: .mediaInterrupted(interruption))
                == "Nothing has reached the room via TURN over UDP at 192.0.2.1:3478 for 3 s, although the server answers. "
                + "Restarting ICE, directly and through the TURN servers 192.0.2.1:3478 and turn.example.org:443, for 120 s."
        )
        let other = RoomStatistics.Path(local: .relay, remote: .host, transport: "TCP", relay: "turn.example.org:443")
        #expect(
            news.sentence(about: .mediaRestored(seconds: 4.44, way: other))
                == "Media flows again after 4.4 s, via TURN over TCP at turn.example.org:443.")
        (interruption.isRelayed, interruption.relays) = (true, ["192.0.2.1:3478"])
        let line = news.sentence(about: .mediaInterrupted(interruption))
        #expect(line?.hasSuffix("Restarting ICE, through the TURN server 192.0.2.1:3478, for 120 s.") == true)
    }

    @Test func `media that is lost for good is not told as a lost server`() {
        var news = ConnectionNews(.seconds(120))
        let lost = RoomError(.mediaConnectionLost, "The path ended.")
        #expect(
            news.sentence(about: .reconnecting(attempt: 1, lost))
                == "Media is lost; joining the room again for 120 s. (The path ended.)")
        #expect(news.outage() == "media has been lost for 0 s")
    }

    @Test func `an outage has one clock, from the end of media to the return of the server`() {
        var news = ConnectionNews(.seconds(30))
        let begin = ContinuousClock.now
        #expect(news.outage(now: begin) == nil)
        _ = news.interrupted(MediaInterruption(isOutgoing: false, seconds: 3), now: begin)
        #expect(news.outage(now: begin + .seconds(2)) == "nothing has arrived from the room for 5 s")
        _ = news.lost(because: "", now: begin + .seconds(6))
        #expect(news.outage(now: begin + .seconds(7)) == "the server has been lost for 1 s")
        #expect(news.back(after: 4, now: begin + .seconds(10)) == "The server is back after 13.0 s; media follows.")
        #expect(news.restored(after: 14, now: begin + .seconds(11)) == nil)
        #expect(news.outage(now: begin + .seconds(11)) == nil)
        // Media that comes much later is news.
        _ = news.interrupted(MediaInterruption(isOutgoing: false, seconds: 3), now: begin)
        _ = news.back(after: 4, now: begin + .seconds(10))
        #expect(news.restored(after: 17, now: begin + .seconds(14)) == "Media flows again after 17.0 s.")
        // An outage of the server alone.
        _ = news.lost(because: "", now: begin + .seconds(20))
        #expect(news.back(after: 2, now: begin + .seconds(22)) == "The server is back after 2.0 s.")
        #expect(news.sentence(about: .problem(RoomError(.tooManyRequests, "The room waits."))) == "The room waits.")
        #expect(news.sentence(about: .participantLeft(ParticipantInfo(id: "p-1", streams: []))) == nil)
    }
}

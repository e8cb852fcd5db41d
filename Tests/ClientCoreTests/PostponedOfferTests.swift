import MediaGraph
import RTP
import RoomProtocol
import Testing

@testable import ClientCore

/// Offers to a room that has too many announcements.
@Suite struct PostponedOfferTests {
    @Test func `a publication waits until the room takes it, and the next one waits for it`() throws {
        let stage = try SteppedClient()
        let client = stage.client
        client.enterToStay()
        let results = Results()
        for _ in 0..<2 { client.connection.publish([TrackOffer(Track())], then: results.note) }
        for round in 1...5 {
            #expect(try client.offers.count == round)
            client.postponeOffer()
            // Once, when it has waited for a second.
            #expect(client.problems == (round == 1 ? [] : [.tooManyRequests]))
            stage.advance(by: .seconds(1))
        }
        #expect(results.all == [])
        try client.acceptOffer(stream: 5)
        #expect(results.all == ["5"])
        for count in 1...2 {
            client.postponeOffer()
            #expect(client.problems.count == count)
            stage.advance(by: .seconds(1))
        }
        try client.acceptOffer(stream: 6)
        #expect(results.all == ["5", "6"] && client.problems.count == 2)
        client.connection.drop()
    }

    @Test func `a restart of ICE does not wait for the room, and the publication waits for its answer`() throws {
        let stage = try SteppedClient()
        let (client, results) = (stage.client, Results())
        client.enterToStay()
        client.connection.publish([TrackOffer(Track())], then: results.note)
        try client.acceptOffer(stream: 5)
        client.connection.publish([TrackOffer(Track())], then: results.note)
        // It is the offer before that the restart waits for.
        client.connection.restartICE()
        #expect(try client.offers.count == 2)
        client.postponeOffer()
        #expect(try client.offers.count == 3 && client.announced.count == 2)
        stage.advance(by: .seconds(3))
        #expect(try client.offers.count == 3)
        try client.acceptOffer()
        #expect(try client.offers.count == 4 && client.announced.count == 3)
        client.postponeOffer()
        stage.advance(by: .seconds(1))
        #expect(try client.offers.count == 5 && results.all == ["5"])
        try client.acceptOffer(stream: 6)
        #expect(results.all == ["5", "6"] && client.connection.up?.tracks.map(\.stream) == [5, 6])
        client.connection.drop()
    }

    @Test(arguments: [true, false])
    func `a publication that waits for a restart of ICE fails when the room is left`(isDropped: Bool) throws {
        let stage = try SteppedClient()
        let (client, results) = (stage.client, Results())
        client.enterToStay()
        client.connection.publish([TrackOffer(Track())], then: results.note)
        try client.acceptOffer(stream: 5)
        client.connection.restartICE()
        client.connection.publish([TrackOffer(Track())], then: results.note)
        #expect(try client.offers.count == 2 && results.all == ["5"])
        if isDropped {
            client.connection.drop()
        } else {
            client.connection.leave()
            client.reply(.left)
        }
        #expect(try client.offers.count == 2 && results.all == ["5", "1302"])
    }

    @Test func `a publication that waits for a restart of ICE is repeated when the client joins again`() throws {
        let stage = try SteppedClient()
        let (client, results) = (stage.client, Results())
        client.enterToStay()
        client.connection.publish([TrackOffer(Track())], then: results.note)
        try client.acceptOffer(stream: 5)
        client.connection.restartICE()
        client.connection.publish([TrackOffer(Track())], then: results.note)
        client.rejoin()
        #expect(try client.offers.count == 3 && client.announced.count == 3 && results.all == ["5"])
        client.connection.drop()
    }

    @Test func `an offer that was repeated with another join leaves the pace of the next one alone`() throws {
        let stage = try SteppedClient()
        let (client, results) = (stage.client, Results())
        client.enterToStay()
        client.connection.publish([TrackOffer(Track())], then: results.note)
        client.postponeOffer()
        stage.advance(by: .milliseconds(500))
        client.rejoin()
        try client.acceptOffer(stream: 5)
        try stage.secureDownSession()
        client.connection.publish([TrackOffer(Track())], then: results.note)
        client.postponeOffer()
        stage.advance(by: .milliseconds(900))
        #expect(try client.offers.count == 3)
        stage.advance(by: .milliseconds(100))
        #expect(try client.offers.count == 4 && results.all == ["5"])
        client.connection.drop()
    }

    @Test(arguments: [true, false])
    func `a publication that waits for the room fails when the room is left`(isDropped: Bool) throws {
        let stage = try SteppedClient()
        let client = stage.client
        client.enterToStay()
        let (results, track) = (Results(), Track())
        client.connection.publish([TrackOffer(track)], then: results.note)
        client.postponeOffer()
        if isDropped {
            client.connection.drop()
        } else {
            client.connection.leave()
            client.reply(.left)
        }
        #expect(results.all == ["1302"] && !track.isConnected)
        stage.advance(by: .seconds(2))
        #expect(try client.offers.count == 1)
    }

    @Test func `a publication that waits for the room is repeated when the client joins again`() throws {
        let stage = try SteppedClient()
        let client = stage.client
        client.enterToStay()
        let results = Results()
        client.connection.publish([TrackOffer(Track())], then: results.note)
        client.postponeOffer()
        client.rejoin()
        #expect(try client.offers.count == 2)
        try client.acceptOffer(stream: 5)
        #expect(results.all == ["5"])
        stage.advance(by: .seconds(2))
        #expect(try client.offers.count == 2)
        client.connection.drop()
    }

    @Test func `a client that has joined again receives at once, and publishes when the room takes its streams`() throws
    {
        let stage = try SteppedClient()
        let (client, results) = (stage.client, Results())
        client.enterToStay()
        let track = Track()
        client.connection.publish([TrackOffer(track)], then: results.note)
        try client.acceptOffer(stream: 5)
        client.rejoin()
        client.postponeOffer()
        #expect(!Self.isBack(client))
        try stage.secureDownSession()
        #expect(Self.isBack(client))
        client.connection.publish([TrackOffer(Track())], then: results.note)
        // Longer than joining may take.
        for round in 2...30 {
            stage.advance(by: .seconds(1))
            #expect(try client.offers.count == 1 + round)
            client.postponeOffer()
        }
        #expect(client.problems == [.tooManyRequests])
        #expect(client.openings.isEmpty && client.ends == [] && track.isConnected && results.all == ["5"])
        stage.advance(by: .seconds(1))
        try client.acceptOffer(stream: 6)
        guard case .republished("p-9", [5: 6])? = client.events.last else {
            Issue.record("\(client.events)")
            return client.connection.drop()
        }
        try client.acceptOffer(stream: 7)
        #expect(results.all == ["5", "7"])
        client.connection.drop()
    }

    @Test func `media whose publication waits for the room ends as soon as it is published`() throws {
        let stage = try SteppedClient()
        let (client, results) = (stage.client, Results())
        client.enterToStay()
        client.connection.publish([TrackOffer(Track())], then: results.note)
        try client.acceptOffer(stream: 5)
        client.rejoin()
        client.postponeOffer()
        try stage.secureDownSession()
        var ends: [RoomError.Code?] = []
        client.connection.unpublish([5]) { ends.append($0.failure) }
        stage.advance(by: .seconds(1))
        try client.acceptOffer(stream: 6)
        #expect(ends == [] && client.ended == [[6]])
        client.reply(.unpublished(StreamReferences(streams: [6])))
        #expect(ends == [nil])
        client.connection.drop()
    }

    private static func isBack(_ client: Client) -> Bool {
        client.events.contains { if case .reconnected = $0 { true } else { false } }
    }

    /// The streams and the codes that publications had.
    private final class Results {
        private(set) var all: [String] = []

        func note(_ result: Result<[PublishedStream], RoomError>) {
            switch result {
            case .success(let streams): all += streams.map { "\($0.id)" }
            case .failure(let error): all.append(error.code.name)
            }
        }
    }
}

import RTP
import RoomFixtures
import RoomProtocol
import Testing

@testable import RoomServer

@Suite(.serialized) struct SubscriptionTests {
    /// The mid of the receiver that a subscribed stream got.
    private func place(of stream: Int, _ answer: Envelope<ServerMessage>) -> String? {
        guard case .subscribed(let body) = answer.message, body.stream == stream else { return nil }
        #expect(body.firstSequenceNumber.map { $0 < 0x4000 } == true)
        return body.mid
    }

    @Test func `four audio streams are heard, the fifth gets the slot of one that leaves`() async throws {
        try await withServer { server, grant in
            let (listener, _) = try join(server, grant.accessToken)
            var speakers: [RawClient] = []
            var streams: [Int] = []
            for _ in 0..<5 {
                let (speaker, _) = try join(server, grant.accessToken)
                streams += try speaker.publish([.opus])
                speakers.append(speaker)
            }
            listener.sendMessage(.ping, id: 9)
            var heard: [Int] = []
            while true {
                let next = try listener.message {
                    if case .receiverAssigned = $0.message { true } else { $0.id == 9 }
                }
                guard case .receiverAssigned(let assigned) = next.message else { break }
                #expect(assigned.media == .audio)
                #expect(assigned.firstSequenceNumber.map { $0 < 0x4000 } == true)
                heard.append(try #require(assigned.stream))
            }
            #expect(heard == Array(streams.prefix(4)))
            speakers[1].sendMessage(.leave, id: 3)
            let freed = try listener.message { if case .receiverAssigned = $0.message { true } else { false } }
            let filled = try listener.message { if case .receiverAssigned = $0.message { true } else { false } }
            guard case .receiverAssigned(let empty) = freed.message, case .receiverAssigned(let next) = filled.message
            else { return }
            #expect(empty.stream == nil)
            #expect(next.stream == streams[4])
            #expect(next.mid == empty.mid)
        }
    }

    @Test func `the pool grows by an offer with one more receiver, up to its maximum`() async throws {
        try await withServer { server, grant in
            let (publisher, _) = try join(server, grant.accessToken)
            let streams = try publisher.publish(Array(repeating: .vp8, count: 4))
            let client = try RawClient(port: server.port)
            #expect(try client.openWebSocket(port: server.port) == 101)
            let pool = ReceiverPool(initial: 2, maximum: 3, growth: 1)
            client.sendMessage(.join(Join(token: grant.accessToken, room: "kitchen", receivers: pool)), id: 1)
            let first = try client.message { if case .offer = $0.message { true } else { false } }
            for (index, stream) in streams.prefix(2).enumerated() {
                client.sendMessage(.subscribe(ViewOfStream(stream: stream)), id: 10 + index)
                let answer = try client.message { $0.id == 10 + index }
                #expect(place(of: stream, answer) == String(4 + index))
            }
            client.sendMessage(.subscribe(ViewOfStream(stream: streams[2])), id: 12)
            let second = try client.message { if case .offer = $0.message { true } else { false } }
            #expect(place(of: streams[2], try client.message { $0.id == 12 }) == "6")
            guard case .offer(let before) = first.message, case .offer(let after) = second.message else { return }
            #expect(after.revision == before.revision + 1)
            let mids = try [before, after].map { try SessionDescription(parsing: $0.sdp).media.map(\.mid) }
            #expect(mids[1] == mids[0] + ["6"])
            #expect(try client.refusal(of: .subscribe(ViewOfStream(stream: streams[3])), id: 13) == "1322")
            client.sendMessage(.unsubscribe(StreamReference(stream: streams[0])), id: 14)
            #expect(try client.message { $0.id == 14 }.message == .unsubscribed(StreamReference(stream: streams[0])))
            client.sendMessage(.subscribe(ViewOfStream(stream: streams[3])), id: 15)
            #expect(place(of: streams[3], try client.message { $0.id == 15 }) == "4")
        }
    }

    @Test func `impossible subscriptions are refused with their own codes`() async throws {
        try await withServer { server, grant in
            let (publisher, _) = try join(server, grant.accessToken)
            let streams = try publisher.publish([.vp8, .opus])
            let (client, joined) = try join(server, grant.accessToken)
            #expect(joined.participants.first?.streams.map(\.id) == streams)
            #expect(try client.refusal(of: .subscribe(ViewOfStream(stream: 999)), id: 2) == "1328")
            #expect(try client.refusal(of: .subscribe(ViewOfStream(stream: streams[1])), id: 3) == "1328")
            #expect(try client.refusal(of: .unsubscribe(StreamReference(stream: streams[0])), id: 4) == "1327")
            #expect(try client.refusal(of: .subscribe(ViewOfStream(stream: streams[0])), id: 5) == nil)
            #expect(try client.refusal(of: .subscribe(ViewOfStream(stream: streams[0])), id: 6) == "1321")
            #expect(try publisher.refusal(of: .subscribe(ViewOfStream(stream: streams[0])), id: 7) == "1328")
        }
    }

    @Test func `a client that does not accept a codec is refused its streams`()
        async throws
    {
        try await withServer { server, grant in
            let (publisher, _) = try join(server, grant.accessToken)
            let streams = try publisher.publish([.h264, .h264])
            let (client, _) = try join(server, grant.accessToken)
            guard case .offer(let offer) = try client.message(where: { $0.isOffer }).message else { return }
            #expect(try client.refusal(of: .subscribe(ViewOfStream(stream: streams[0])), id: 2) == nil)
            client.sendMessage(.answer(try answer(to: offer, without: .h264)))
            let withdrawn = try client.message { if case .receiverAssigned = $0.message { true } else { false } }
            guard case .receiverAssigned(let freed) = withdrawn.message else { return }
            #expect(freed.stream == nil)
            let refused = try client.message { if case .error = $0.message { true } else { false } }
            guard case .error(let problem) = refused.message else { return }
            #expect(problem.code == "1326")
            #expect(try client.refusal(of: .subscribe(ViewOfStream(stream: streams[1])), id: 3) == "1326")
        }
    }

    @Test func `unsubscribing from a stream that has just ended succeeds`() async throws {
        try await withServer { server, grant in
            let (publisher, _) = try join(server, grant.accessToken)
            let streams = try publisher.publish([.vp8])
            let (client, _) = try join(server, grant.accessToken)
            #expect(try client.refusal(of: .subscribe(ViewOfStream(stream: streams[0])), id: 2) == nil)
            publisher.sendMessage(.leave, id: 3)
            _ = try client.message { if case .participantLeft = $0.message { true } else { false } }
            #expect(try client.refusal(of: .unsubscribe(StreamReference(stream: streams[0])), id: 4) == nil)
            #expect(try client.refusal(of: .unsubscribe(StreamReference(stream: 999)), id: 5) == "1328")
        }
    }

    @Test func `a refused publish can be corrected and tried again`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            var weak = publication([.vp8])
            weak.sdp = weak.sdp.replacing("sha-256", with: "sha-1")
            #expect(try client.refusal(of: .publish(weak), id: 2) == "1411")
            #expect(try client.publish([.vp8], id: 3).count == 1)
            var long = publication([.vp8])
            long.streams[0].attributes.extraValue = String(repeating: "x", count: 2000)
            #expect(try client.refusal(of: .publish(long), id: 4) == "1441")
        }
    }

    @Test func `an invalid description is refused and the connection continues`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            let hostile = ["", "v=0", String(repeating: "m=video 9 x 1\r\n", count: 4000), "\u{0}\u{1}"]
            for (index, sdp) in hostile.enumerated() {
                let publish = Publish(sdp: sdp, streams: [.init(mid: "0")])
                #expect(try client.refusal(of: .publish(publish), id: 20 + index) == "1431", "\(sdp.prefix(20))")
            }
            // The server ends a connection of which more than 256 messages wait.
            for id in 30..<40 {
                for _ in 0..<100 {
                    client.sendMessage(.candidate(Candidate(session: .down, candidate: "candidate:nonsense")))
                }
                // The room handles it after all of them.
                #expect(try client.refusal(of: .unsubscribe(StreamReference(stream: 999)), id: id) == "1328")
            }
            #expect(try client.publish([.vp8], id: 40).count == 1)
        }
    }
}

extension Envelope where Message == ServerMessage {
    fileprivate var isOffer: Bool { if case .offer = message { true } else { false } }
}

/// A valid answer with a fake transport.
private func answer(to offer: Description, without codec: Codec) throws -> Description {
    var parsed = try SessionDescription(parsing: offer.sdp)
    for index in parsed.media.indices { parsed.media[index].formats.removeAll { Codec($0) == codec } }
    var transport = try #require(parsed.transport)
    transport.setup = .active
    let answer = DownDescription.answer(to: parsed, sessionID: 1, transport: transport)
    return Description(session: .down, sdp: answer.serialized(), revision: offer.revision)
}

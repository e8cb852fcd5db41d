import PeerIO
import PeerLoop
import RTP
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

@Suite(.serialized) struct LoadTests {
    @Test func `a busy room gets its share of each turn, and another room's media continues`() async throws {
        try await withMedia { server, grant, loop in
            let publisher = try MediaClient(server, grant, room: "probe", loop: loop)
            let (up, streams) = try await publisher.publish()
            let subscriber = try MediaClient(server, grant, room: "probe", loop: loop)
            let down = try await subscriber.watch()
            try subscriber.subscribe(streams[0])
            #expect(await packetsFlow(1, from: up, to: down, on: loop))
            let busy = try (0..<20).map { _ in try join(server, grant.accessToken, room: "busy").0 }
            let question = busy[0].frame(Array(#"{"type":"subscribe","id":1,"stream":999999}"#.utf8))
            let questions = Array(repeatElement(question, count: 100).joined())
            for client in busy {
                client.sendMessage(.publish(publication([.opus])), id: 2)
                client.send(questions)
            }
            let received = await onLoop(loop) { down.value.received.count }
            for _ in 0..<50 { await onLoop(loop) { up.value.send(next: 100) } }
            #expect(await eventually { await onLoop(loop) { down.value.received.count > received + 100 } })
            for client in busy { _ = try client.message { $0.id == 1 } }
            let most = await server.busiestTurn
            #expect(most.work <= EventLoop.workShare)
            #expect(most.datagrams <= MediaPort.datagramShare)
            #expect(most.datagrams > 1)
            await publisher.close()
            await subscriber.close()
        }
    }

    @Test func `a room can be entered however much its participants announce`() async throws {
        try await withServer { server, grant in
            // A control character takes six bytes in JSON.
            let long = String(repeating: "\u{1}", count: 1024)
            var publishers: [RawClient] = []
            for _ in 0..<3 {
                let (client, _) = try join(server, grant.accessToken)
                var publish = publication(Array(repeating: .vp8, count: 16))
                for index in publish.streams.indices { publish.streams[index].attributes.extraValue = long }
                #expect(try client.refusal(of: .publish(publish), id: 2) == nil)
                publishers.append(client)
            }
            let (client, joined) = try join(server, grant.accessToken)
            let answer = Envelope<ServerMessage>(id: 1, .joined(joined))
            #expect(answer.json().utf8.count < Signalling.maximumMessageLength)
            var known = joined.participants
            // The rest is sent before the offer.
            while true {
                let next = try client.message { _ in true }
                if case .offer = next.message { break }
                guard case .participantEntered(let entered) = next.message else { continue }
                #expect(next.json().utf8.count < Signalling.maximumMessageLength)
                known.append(entered.participant)
            }
            #expect(known.count == 3)
            #expect(
                known.allSatisfy {
                    $0.streams.count == 16 && $0.streams.allSatisfy { $0.attributes.extraValue == long }
                })
        }
    }

    @Test func `the server refuses streams whose announcement would be too long`() async throws {
        try await withServer { server, grant in
            var refusals: [String?] = []
            var publishers: [RawClient] = []
            for _ in 0..<9 {
                let (client, _) = try join(server, grant.accessToken)
                var publish = publication(Array(repeating: .vp8, count: 16))
                for index in publish.streams.indices {
                    publish.streams[index].attributes.extraValue = String(repeating: "\u{1}", count: 1024)
                }
                refusals.append(try client.refusal(of: .publish(publish), id: 2))
                publishers.append(client)
            }
            #expect(refusals == Array(repeating: nil, count: 7) + ["1441", "1441"])
            let (client, _) = try join(server, grant.accessToken)
            client.sendMessage(.ping, id: 3)
            #expect(try client.message { $0.id == 3 }.message == .pong)
        }
    }
}

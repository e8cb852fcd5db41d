import RTP
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

@Suite(.serialized) struct AttributeTests {
    private let wanted = StreamAttributes(extraValue: "a \"screen\"", isActive: false, isAlwaysOn: true, sort: "5 fit")

    @Test func `attributes reach the others with the publication, and those that join later`() async throws {
        try await withServer { server, grant in
            let (viewer, _) = try join(server, grant.accessToken)
            let (publisher, me) = try join(server, grant.accessToken)
            var publish = publication([.vp8])
            publish.streams[0].attributes = wanted
            publisher.sendMessage(.publish(publish), id: 2)
            let announced = try viewer.message { if case .streamPublished = $0.message { true } else { false } }
            guard case .streamPublished(let body) = announced.message else { return }
            #expect(body.stream.attributes == wanted)
            let (_, late) = try join(server, grant.accessToken)
            #expect(late.participants.first { $0.id == me.participant }?.streams.map(\.attributes) == [wanted])
            for (id, attributes) in [
                StreamAttributes(extraValue: String(repeating: "x", count: 1025)), StreamAttributes(sort: "a\nb"),
            ].enumerated() {
                publish.streams[0].attributes = attributes
                #expect(try publisher.refusal(of: .publish(publish), id: 3 + id) != nil)
            }
        }
    }

    @Test func `a room takes three audio streams that are always on, and another one when one of them is off`()
        async throws
    {
        try await withServer { server, grant in
            let (publisher, _) = try join(server, grant.accessToken)
            var publish = publication([.opus, .opus, .opus, .opus])
            for index in publish.streams.indices { publish.streams[index].attributes.isAlwaysOn = true }
            publisher.sendMessage(.publish(publish), id: 2)
            guard case .published(let published) = try publisher.message(where: { $0.id == 2 }).message,
                case .error(let problem) = try publisher.message(where: {
                    if case .error = $0.message { true } else { false }
                }).message
            else {
                Issue.record("The server refused all streams, or did not report the fourth one.")
                return
            }
            #expect(problem.code == "1441")
            let streams = published.streams.map(\.stream)
            func set(_ stream: Int, _ isAlwaysOn: Bool, id: Int) throws -> String? {
                let body = SetStream(stream: stream, change: StreamChange(isAlwaysOn: isAlwaysOn))
                publisher.sendMessage(.setStream(body), id: id)
                let reply = try publisher.message { $0.id == id }.message
                if case .error(let problem) = reply { return problem.error.code.name }
                return reply == .streamSet(StreamReference(stream: stream)) ? nil : "\(reply)"
            }
            let (_, late) = try join(server, grant.accessToken)
            #expect(late.participants.first?.streams.map(\.attributes.isAlwaysOn) == [true, true, true, false])
            let taken = try streams.enumerated().map { try set($1, true, id: 10 + $0) }
            #expect(taken == [nil, nil, nil, "1441"])
            // Not a fourth one.
            #expect(try set(streams[1], true, id: 20) == nil)
            #expect(try set(streams[0], false, id: 21) == nil && set(streams[3], true, id: 22) == nil)
        }
    }

    @Test func `video that is always on takes no place, and neither does a participant without a connection`()
        async throws
    {
        try await withServer { server, grant in
            let ghost = try RawClient(port: server.port)
            #expect(try ghost.openWebSocket(port: server.port) == 101)
            ghost.sendMessage(.join(Join(token: grant.accessToken, room: "kitchen", resume: true)), id: 1)
            _ = try ghost.message { $0.id == 1 }
            func streams(_ codecs: [Codec]) -> ClientMessage {
                var publish = publication(codecs)
                for index in publish.streams.indices { publish.streams[index].attributes.isAlwaysOn = true }
                return .publish(publish)
            }
            #expect(try ghost.refusal(of: streams([.vp8, .opus, .opus, .opus]), id: 2) == nil)
            let (again, joined) = try join(server, grant.accessToken)
            #expect(
                joined.participants.first?.streams.map(\.attributes.isAlwaysOn) == [true, true, true, true])
            let stream = try again.publish([.opus])[0]
            let change = ClientMessage.setStream(SetStream(stream: stream, change: StreamChange(isAlwaysOn: true)))
            #expect(try again.refusal(of: change, id: 3) == "1441")
            ghost.endSending()
            #expect(ghost.isClosedByServer())
            var id = 4
            while try again.refusal(of: change, id: id) != nil, id < 14 {
                id += 1
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(id < 14)
        }
    }

    @Test func `a change tells the others what changed, and only the publisher may change a stream`() async throws {
        try await withServer { server, grant in
            let (publisher, me) = try join(server, grant.accessToken)
            let stream = try publisher.publish([.opus])[0]
            let (viewer, _) = try join(server, grant.accessToken)
            let all = StreamChange(wanted, state: nil)
            #expect(try viewer.refusal(of: .setStream(SetStream(stream: stream, change: all)), id: 2) == "1328")
            let steps = [
                (all, all), (StreamChange(sort: "5 fit"), nil), (StreamChange(), nil),
                (
                    StreamChange(state: .waiting("a"), sort: "1 crop"),
                    StreamChange(state: .waiting("a"), sort: "1 crop")
                ),
                (StreamChange(isActive: true, sort: "1 crop"), StreamChange(isActive: true)),
                (StreamChange(state: .live), StreamChange(state: .live)),
            ]
            var state = StreamState.live
            for (id, (change, told)) in steps.enumerated() {
                publisher.sendMessage(.setStream(SetStream(stream: stream, change: change)), id: 10 + id)
                #expect(
                    try publisher.message { $0.id == 10 + id }.message == .streamSet(StreamReference(stream: stream)))
                guard let told else { continue }
                state = told.state ?? state
                // A stream that is off leaves its audio slot.
                let next = try viewer.message { if case .receiverAssigned = $0.message { false } else { true } }
                #expect(
                    next.message
                        == .streamChanged(
                            StreamChanged(participant: me.participant, stream: stream, state: state, change: told)))
            }
        }
    }

    @Test func `an attribute out of its limits is refused, and the others of the change stay too`() async throws {
        try await withServer { server, grant in
            let (publisher, me) = try join(server, grant.accessToken)
            let stream = try publisher.publish([.opus])[0]
            for (id, (change, code)) in [
                (StreamChange(isActive: false, sort: String(repeating: "9", count: 33)), "protocol.malformed"),
                (StreamChange(isActive: false, extraValue: String(repeating: "x", count: 1025)), "1441"),
                (StreamChange(state: .waiting("a\u{0}"), isActive: false), "protocol.malformed"),
            ].enumerated() {
                let message = ClientMessage.setStream(SetStream(stream: stream, change: change))
                #expect(try publisher.refusal(of: message, id: 3 + id) == code)
            }
            let (_, late) = try join(server, grant.accessToken)
            let streams = late.participants.first { $0.id == me.participant }?.streams
            #expect(streams?.map(\.attributes) == [StreamAttributes()])
        }
    }

    @Test func `states and attributes have one rate`() async throws {
        try await withServer { server, grant in
            let (publisher, _) = try join(server, grant.accessToken)
            let stream = try publisher.publish([.vp8])[0]
            var (refusal, changes) = (String?.none, 0)
            while refusal == nil, changes < 1000 {
                changes += 1
                let message: ClientMessage =
                    changes.isMultiple(of: 2)
                    ? .setStreamState(SetStreamState(stream: stream, state: .waiting("\(changes)")))
                    : .setStream(SetStream(stream: stream, change: StreamChange(sort: "\(changes)")))
                refusal = try publisher.refusal(of: message, id: 20 + changes)
            }
            #expect(refusal == "server.too-many-requests")
            let soon = SetStream(stream: stream, change: StreamChange(extraValue: "too soon"))
            #expect(try publisher.refusal(of: .setStream(soon), id: 2000) == "server.too-many-requests")
        }
    }

    @Test func `extraValues for which the room's announcements have no place are refused`() async throws {
        try await withServer { server, grant in
            let long = String(repeating: "\u{1}", count: 1024)
            var (taken, clients) = (0, [RawClient]())
            for _ in 0..<9 {
                let (client, _) = try join(server, grant.accessToken)
                clients.append(client)
                for (index, stream) in try client.publish(Array(repeating: .vp8, count: 16)).enumerated() {
                    let change = SetStream(stream: stream, change: StreamChange(extraValue: long))
                    if try client.refusal(of: .setStream(change), id: 3 + index) == nil { taken += 1 }
                }
            }
            // 126 of 6224 bytes fill the room's 768 KiB, less those of the others without text.
            #expect((100...126).contains(taken), "\(taken)")
        }
    }
}

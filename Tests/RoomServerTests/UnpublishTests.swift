import PeerIO
import RTP
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

@Suite(.serialized) struct UnpublishTests {
    @Test func `a stream that its publisher ends is gone for all, and its receiver is free`() async throws {
        try await withServer { server, grant in
            let (publisher, me) = try join(server, grant.accessToken)
            let streams = try publisher.publish([.vp8, .opus])
            let (viewer, _) = try join(server, grant.accessToken)
            #expect(try viewer.refusal(of: .subscribe(ViewOfStream(stream: streams[0])), id: 2) == nil)
            publisher.sendMessage(.unpublish(StreamReferences(streams: [streams[0]])), id: 3)
            #expect(
                try publisher.message { $0.id == 3 }.message == .unpublished(StreamReferences(streams: [streams[0]])))
            let freed = try viewer.message {
                if case .receiverAssigned(let body) = $0.message { body.media == .video } else { false }
            }
            guard case .receiverAssigned(let empty) = freed.message else { return }
            #expect(empty.stream == nil)
            let next = try viewer.message { _ in true }.message
            #expect(next == .streamUnpublished(StreamUnpublished(participant: me.participant, stream: streams[0])))
            #expect(try viewer.refusal(of: .subscribe(ViewOfStream(stream: streams[0])), id: 4) == "1328")
            #expect(try viewer.refusal(of: .unsubscribe(StreamReference(stream: streams[0])), id: 5) == nil)
            let (_, late) = try join(server, grant.accessToken)
            #expect(late.participants.first { $0.id == me.participant }?.streams.map(\.id) == [streams[1]])
        }
    }

    @Test func `an audio stream that ends leaves its slot to the next`() async throws {
        try await withServer { server, grant in
            let (listener, _) = try join(server, grant.accessToken)
            var speakers: [(client: RawClient, stream: Int)] = []
            for _ in 0..<5 {
                let (speaker, _) = try join(server, grant.accessToken)
                speakers.append((speaker, try speaker.publish([.opus])[0]))
            }
            #expect(try speakers[1].client.refusal(of: .unpublish(.init(streams: [speakers[1].stream])), id: 3) == nil)
            let filled = try listener.message {
                guard case .receiverAssigned(let body) = $0.message else { return false }
                return body.stream == speakers[4].stream
            }
            guard case .receiverAssigned(let body) = filled.message else { return }
            #expect(body.mid == "1")
            // Its publisher is still there, and hears the others.
            #expect(try speakers[1].client.refusal(of: .ping, id: 4) == nil)
        }
    }

    @Test func `unpublishing what the participant does not publish is refused, and ends nothing`() async throws {
        try await withServer { server, grant in
            let (publisher, _) = try join(server, grant.accessToken)
            let streams = try publisher.publish([.vp8, .opus])
            let (other, _) = try join(server, grant.accessToken)
            func refusal(_ client: RawClient, _ streams: [Int], id: Int) throws -> String? {
                try client.refusal(of: .unpublish(StreamReferences(streams: streams)), id: id)
            }
            #expect(try refusal(other, [streams[0]], id: 3) == "1328")
            #expect(try refusal(publisher, [streams[0], 999], id: 4) == "1328")
            #expect(try refusal(publisher, [], id: 5) == "1328")
            #expect(try refusal(publisher, [streams[0], streams[0]], id: 9) == "1328")
            #expect(try refusal(publisher, Array(repeating: streams[0], count: 1000), id: 10) == "1328")
            #expect(try refusal(publisher, [streams[0]], id: 6) == nil)
            #expect(try refusal(publisher, [streams[0]], id: 7) == "1328")
            #expect(try refusal(publisher, [streams[0], streams[1]], id: 11) == "1328")
            #expect(try refusal(publisher, [streams[1]], id: 8) == nil)
        }
    }

    @Test func `a stream's state reaches the others and those that join later, and only its publisher sets it`()
        async throws
    {
        try await withServer { server, grant in
            let (publisher, me) = try join(server, grant.accessToken)
            let streams = try publisher.publish([.vp8, .opus])
            let (viewer, _) = try join(server, grant.accessToken)
            let waiting = SetStreamState(stream: streams[1], state: .waiting("microphone \"lost\""))
            #expect(try viewer.refusal(of: .setStreamState(waiting), id: 2) == "1328")
            publisher.sendMessage(.setStreamState(waiting), id: 3)
            #expect(
                try publisher.message { $0.id == 3 }.message == .streamStateSet(StreamReference(stream: streams[1])))
            _ = try viewer.message {
                $0.message
                    == .streamChanged(
                        StreamChanged(participant: me.participant, stream: streams[1], state: waiting.state))
            }
            let (_, late) = try join(server, grant.accessToken)
            let states = late.participants.first { $0.id == me.participant }?.streams.map(\.state)
            #expect(states == [.live, waiting.state])
            for (id, text) in ["a\u{0}b", String(repeating: "x", count: 129)].enumerated() {
                let hostile = SetStreamState(stream: streams[1], state: .waiting(text))
                #expect(try publisher.refusal(of: .setStreamState(hostile), id: 10 + id) == "protocol.malformed")
            }
            var (refusal, changes) = (String?.none, 0)
            while refusal == nil, changes < 1000 {
                changes += 1
                let state = SetStreamState(stream: streams[1], state: .waiting("\(changes)"))
                refusal = try publisher.refusal(of: .setStreamState(state), id: 20 + changes)
            }
            #expect(refusal == "server.too-many-requests")
        }
    }

    @Test func `a text for which the room's announcements have no place is refused, until another one ends`()
        async throws
    {
        try await withServer { server, grant in
            var clients: [RawClient] = []
            // 126 streams of 6224 bytes leave place for five texts of 288.
            for count in Array(repeating: 16, count: 7) + [14] {
                let (client, _) = try join(server, grant.accessToken)
                var publish = publication(Array(repeating: .vp8, count: count))
                for index in publish.streams.indices {
                    publish.streams[index].attributes.extraValue = String(repeating: "\u{1}", count: 1024)
                }
                clients.append(client)
                client.sendMessage(.publish(publish), id: 2)
                guard case .published(let body) = try client.message(where: { $0.id == 2 }).message, count == 14
                else { continue }
                let streams = body.streams.map(\.stream)
                func refusal(_ state: StreamState, of stream: Int, id: Int) throws -> String? {
                    try client.refusal(of: .setStreamState(.init(stream: streams[stream], state: state)), id: id)
                }
                let text = String(repeating: "\"", count: 128)
                for stream in 0..<5 { #expect(try refusal(.waiting(text), of: stream, id: 3 + stream) == nil) }
                #expect(try refusal(.waiting(text), of: 5, id: 10) == "1441")
                #expect(try refusal(.live, of: 0, id: 11) == nil)
                #expect(try refusal(.waiting(text), of: 5, id: 12) == nil)
            }
        }
    }

    @Test func `an m-line is published again under its mid, and another one in its place`() async throws {
        try await withServer { server, grant in
            let (publisher, _) = try join(server, grant.accessToken)
            let first = try publisher.publish([.vp8])
            #expect(try publisher.refusal(of: .unpublish(StreamReferences(streams: first)), id: 3) == nil)
            let second = try publisher.publish([.vp8], id: 4)
            #expect(second.count == 1)
            #expect(second != first)
            #expect(try publisher.refusal(of: .unpublish(StreamReferences(streams: second)), id: 5) == nil)
            var recycled = publication([.opus])
            recycled.sdp = recycled.sdp.replacing("a=mid:0", with: "a=mid:7").replacing("BUNDLE 0", with: "BUNDLE 7")
            recycled.streams[0].mid = "7"
            #expect(try publisher.refusal(of: .publish(recycled), id: 6) == nil)
        }
    }

    @Test func `sixteen streams can be published after sixteen others ended`() async throws {
        try await withServer { server, grant in
            let (publisher, _) = try join(server, grant.accessToken)
            for round in 0..<3 {
                let streams = try publisher.publish(Array(repeating: .vp8, count: 16), id: 10 + 2 * round)
                #expect(streams.count == 16)
                let references = StreamReferences(streams: streams)
                #expect(try publisher.refusal(of: .unpublish(references), id: 11 + 2 * round) == nil)
            }
        }
    }

    @Test func `packets of an ended stream reach no one, and those of its m-line's next stream do`() async throws {
        try await withMedia { server, grant, loop in
            let publisher = try MediaClient(server, grant, loop: loop)
            let (up, streams) = try await publisher.publish()
            let viewer = try MediaClient(server, grant, loop: loop)
            let down = try await viewer.watch()
            try viewer.subscribe(streams[0])
            #expect(
                await eventually {
                    await onLoop(loop) {
                        up.value.send(next: 1, keyframe: true)
                        return !down.value.received.isEmpty
                    }
                })
            #expect(try publisher.raw.refusal(of: .unpublish(StreamReferences(streams: streams)), id: 3) == nil)
            let before = await onLoop(loop) { down.value.received.count }
            // The m-line's second stream comes from the same sender, as a browser's transceiver does it.
            let again = await onLoop(loop) { up.value.reoffer }
            publisher.raw.sendMessage(.publish(again), id: 4)
            guard case .published(let published) = try publisher.raw.message(where: { $0.id == 4 }).message else {
                Issue.record("The m-line is not published again.")
                return
            }
            // Nobody watches it yet, so nothing arrives.
            await onLoop(loop) { up.value.send(next: 5, keyframe: true) }
            #expect(try viewer.raw.refusal(of: .ping, id: 5) == nil)
            #expect(await onLoop(loop) { down.value.received.count } == before)
            try viewer.subscribe(published.streams[0].stream)
            #expect(
                await eventually {
                    await onLoop(loop) {
                        up.value.send(next: 1, keyframe: true)
                        return down.value.received.count > before
                    }
                })
            await publisher.close()
            await viewer.close()
        }
    }
}

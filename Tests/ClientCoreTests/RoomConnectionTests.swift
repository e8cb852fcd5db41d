import Foundation
import MediaGraph
import PeerIO
import PeerLoop
import RTP
import RoomProtocol
import Testing
import TestSupport

@testable import ClientCore

/// Connections whose signalling link is the test. Every test is one piece of work on the loop, so no time passes.
@Suite struct RoomConnectionTests {
    @Test func `a joined connection reports it, and its request to leave is the last message`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.join()
            let join = Join(versions: [1], token: "a token", room: "room", receivers: ReceiverPool())
            #expect(client.sent == [Envelope(id: 1, ClientMessage.join(join)).json()])
            #expect(client.percents == [33])
            client.connection.leave()
            client.hear(#"{"type":"left","id":2}"#)
            #expect(client.sent.dropFirst() == [#"{"id":2,"type":"leave"}"#])
            #expect(client.isClosed)
            #expect(client.ends == [nil])
        }
    }

    /// Its timer comes after the shorter deadline, and before the longer one.
    @Test func `a TURN server that the room server names extends the time to connect`() async throws {
        let loop = EventLoop(name: "test")
        let ends: [RoomError.Code?] = try await withCheckedThrowingContinuation { done in
            loop.execute {
                do {
                    let client = try Client(loop, options: ConnectionOptions(connectDeadline: .milliseconds(1)))
                    client.join(servers: #"[{"urls":"turn:203.0.113.7","username":"u","credential":"p"}]"#)
                    let timer = loop.makeTimer {
                        done.resume(returning: client.ends)
                        client.connection.drop()
                    }
                    timer.arm(at: loop.now + .milliseconds(20))
                } catch {
                    done.resume(throwing: error)
                }
            }
        }
        loop.shutdown()
        #expect(ends == [])
    }

    @Test func `requests that are pending when a connection is dropped fail`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.join()
            var errors: [RoomError.Code] = []
            client.connection.request(.ping) { result in
                if case .failure(let error) = result { errors.append(error.code) }
            }
            client.connection.drop()
            #expect(errors == [.roomReleased])
            #expect(client.isClosed)
            #expect(client.ends == [])
        }
    }

    @Test func `a link that opens after the connection has ended is closed unused`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            #expect(client.connection.begin())
            #expect(client.connection.signIn(to: client.server))
            client.connection.fail(RoomError(.serverUnreachable, "It is gone."))
            client.connection.join(client.room, token: "a token", over: client.link)
            #expect(client.isClosed)
            #expect(client.sent == [])
            #expect(client.ends == [.serverUnreachable])
            #expect(!client.connection.begin())
        }
    }

    @Test func `an offer waits until the one before is answered`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.join()
            var prepared: [[String]] = []
            for _ in 0..<3 {
                client.connection.preparePublishing([TrackOffer(Track())]) { result in
                    prepared.append((try? result.get()) ?? [])
                }
            }
            #expect(prepared == [["0"]])
            var refusals: [String] = []
            func offer() {
                client.connection.offerPrepared { result in
                    if case .failure(let error) = result { refusals.append(error.message) }
                }
            }
            offer()
            #expect(prepared.count == 1)
            client.hear(#"{"type":"error","id":2,"code":"1310","message":"Too many."}"#)
            #expect(prepared == [["0"], ["1"]])
            offer()
            client.hear(#"{"type":"error","id":3,"code":"1310","message":"Still too many."}"#)
            #expect(refusals == ["Too many.", "Still too many."])
            #expect(prepared == [["0"], ["1"], ["2"]])
            client.connection.drop()
        }
    }

    @Test func `tracks of a failed offer are disconnected, and so are those of an ended room`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop)
            client.join()
            let tracks = (0..<2).map { _ in Track() }
            client.connection.publish([TrackOffer(tracks[0])]) { _ in }
            client.hear(#"{"type":"error","id":2,"code":"1310","message":"Too many."}"#)
            client.connection.preparePublishing([TrackOffer(tracks[1])]) { _ in }
            #expect(tracks.map(\.isConnected) == [false, true])
            client.connection.receive(.closed(nil))
            #expect(client.ends == [.connectionLost])
            #expect(tracks.map(\.isConnected) == [false, false])
            var late: RoomError?
            client.connection.offerPrepared { result in
                if case .failure(let error) = result { late = error }
            }
            #expect(late?.message == "The room was left while the local media started.")
        }
    }

    @Test func `an unpublished track is disconnected immediately, and the next one has its m-line and another mid`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            let tracks = (0..<3).map { _ in Track() }
            for (index, track) in tracks.prefix(2).enumerated() {
                client.connection.publish([TrackOffer(track)]) { _ in }
                try client.acceptOffer(id: 2 + index, stream: 7 + index)
            }
            var results: [RoomError?] = []
            client.connection.unpublish([7]) { result in
                if case .failure(let error) = result { results.append(error) } else { results.append(nil) }
            }
            #expect(tracks.map(\.isConnected) == [false, true, true])
            #expect(client.sent.last == #"{"id":4,"streams":[7],"type":"unpublish"}"#)
            client.hear(#"{"type":"unpublished","id":4,"streams":[7]}"#)
            client.connection.unpublish([7]) { if case .failure(let error) = $0 { results.append(error) } }
            client.connection.unpublish([8, 99]) { if case .failure(let error) = $0 { results.append(error) } }
            #expect(results.map(\.?.code) == [nil, .noSuchStream, .noSuchStream])
            #expect(tracks[1].isConnected)
            client.connection.publish([TrackOffer(tracks[2])]) { _ in }
            let offer = try #require(client.offers.last)
            #expect(offer.media.map(\.mid) == ["2", "1"])
            #expect(offer.media.map(\.isRejected) == [false, false])
            client.connection.drop()
        }
    }

    @Test func `a track that the room does not take is disconnected, and reported with its codec`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            let tracks = [Track(.opus), Track(.h264)]
            var streams: [PublishedStream] = []
            client.connection.publish(tracks.map { TrackOffer($0) }) { streams = (try? $0.get()) ?? [] }
            try client.acceptOffer(id: 2, stream: 7)
            #expect(streams.map(\.id) == [7])
            #expect(tracks.map(\.isConnected) == [true, false])
            let problems = client.events.compactMap { if case .problem(let error) = $0 { error.message } else { nil } }
            #expect(problems.count == 1 && problems.first?.contains("does not take the video as H264") == true)
            client.connection.drop()
        }
    }

    @Test func `a track's state is told when it is published, one change at a time, and the last one at the end`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            let track = Track()
            track.streamState = .waiting("a")
            client.connection.publish([TrackOffer(track)]) { _ in }
            client.connection.stateChanged(mid: "0")
            #expect(client.states == [])
            try client.acceptOffer(id: 2, stream: 7)
            #expect(client.states == [.waiting("a")])
            for state in [.live, .waiting("b"), .live, .waiting("c")] as [StreamState] {
                track.streamState = state
                client.connection.stateChanged(mid: "0")
            }
            #expect(client.states == [.waiting("a")])
            client.hear(#"{"type":"streamSet","id":3,"stream":7}"#)
            #expect(client.states == [.waiting("a"), .waiting("c")])
            // An older server refuses the message, and a still older one the state alone. The next change is tried all the same.
            client.hear(#"{"type":"error","id":4,"code":"protocol.unknown-message","message":"No."}"#)
            client.hear(#"{"type":"error","id":5,"code":"protocol.unknown-message","message":"No."}"#)
            client.connection.stateChanged(mid: "0")
            #expect(client.states.count == 2)
            track.streamState = .live
            client.connection.stateChanged(mid: "0")
            #expect(client.states.count == 2 && client.problems == [])
            #expect(client.sent.last == #"{"id":6,"stream":7,"type":"setStreamState"}"#)
            client.connection.drop()
        }
    }

    @Test func `attributes are told with the publication, and those that change later, one change at a time`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            let attributes = StreamAttributes(extraValue: "screen", isActive: false, sort: "5 fit")
            client.connection.publish([TrackOffer(Track(), attributes)]) { _ in }
            #expect(client.announced == [attributes])
            try client.acceptOffer(id: 2, stream: 7)
            #expect(client.changes == [])
            client.connection.setStream(7, StreamChange(isActive: true))
            for change in [
                StreamChange(sort: "1 crop"), StreamChange(extraValue: "a"), StreamChange(isActive: false),
                StreamChange(extraValue: "b"), StreamChange(isActive: true),
            ] {
                client.connection.setStream(7, change)
            }
            client.connection.setStream(8, StreamChange(extraValue: "of no stream"))
            #expect(client.changes == [StreamChange(isActive: true)])
            client.hear(#"{"type":"streamSet","id":3,"stream":7}"#)
            #expect(client.changes.dropFirst() == [StreamChange(extraValue: "b", sort: "1 crop")])
            client.hear(#"{"type":"streamSet","id":4,"stream":7}"#)
            #expect(client.changes.count == 2 && client.problems == [])
            client.connection.drop()
        }
    }

    @Test func `changes that are refused together are tried alone, and a refused attribute has its former value`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            client.connection.publish([TrackOffer(Track(), StreamAttributes(extraValue: "camera"))]) { _ in }
            try client.acceptOffer(id: 2, stream: 7)
            client.connection.setStream(7, StreamChange(extraValue: "long", sort: "5 fit"))
            client.hear(#"{"type":"error","id":3,"code":"1441","message":"No place."}"#)
            client.hear(#"{"type":"streamSet","id":4,"stream":7}"#)
            client.hear(#"{"type":"error","id":5,"code":"1441","message":"No place."}"#)
            #expect(
                client.changes == [
                    StreamChange(extraValue: "long", sort: "5 fit"), StreamChange(sort: "5 fit"),
                    StreamChange(extraValue: "long"),
                ])
            #expect(client.problems == [.streamChangeRefused])
            client.connection.setStream(7, StreamChange(extraValue: "camera"))
            #expect(client.changes.count == 3)
            client.connection.setStream(7, StreamChange(isAlwaysOn: true, sort: "0 crop"))
            #expect(client.changes.last == StreamChange(isAlwaysOn: true, sort: "0 crop"))
            client.connection.drop()
        }
    }

    @Test func `a change that comes too soon for the server is told a second later, with those since then`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            client.connection.publish([TrackOffer(Track())]) { _ in }
            try client.acceptOffer(id: 2, stream: 7)
            client.connection.setStream(7, StreamChange(extraValue: "a"))
            client.hear(#"{"type":"error","id":3,"code":"server.too-many-requests","message":"Later."}"#)
            client.connection.setStream(7, StreamChange(extraValue: "b", sort: "5 fit"))
            #expect(client.changes.count == 1 && client.problems == [])
            client.connection.drop()
        }
    }

    @Test func `an attribute that no server takes is refused at once, and an older server's refusal says so`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            client.connection.publish([TrackOffer(Track())]) { _ in }
            try client.acceptOffer(id: 2, stream: 7)
            client.connection.setStream(7, StreamChange(sort: "a\nb"))
            client.connection.setStream(7, StreamChange(extraValue: String(repeating: "x", count: 1025)))
            #expect(client.changes == [] && client.problems == [.messageMalformed, .publishRefused])
            client.connection.setStream(7, StreamChange(isActive: false))
            client.hear(#"{"type":"error","id":3,"code":"protocol.unknown-message","message":"No."}"#)
            #expect(client.problems.count == 2)
            client.connection.setStream(7, StreamChange(extraValue: "a", sort: "5 fit"))
            #expect(
                client.changes.count == 1 && client.problems.last == .streamChangeFailed && client.problems.count == 3)
            client.connection.drop()
        }
    }

    @Test func `an older server is told the state alone, in the form that it knows`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            let track = Track()
            client.connection.publish([TrackOffer(track)]) { _ in }
            try client.acceptOffer(id: 2, stream: 7)
            track.streamState = .waiting("camera unplugged")
            client.connection.setStream(7, StreamChange(extraValue: "a"))
            client.hear(#"{"type":"error","id":3,"code":"protocol.unknown-message","message":"No."}"#)
            #expect(
                client.sent.last
                    == #"{"id":4,"state":"waiting","stream":7,"text":"camera unplugged","type":"setStreamState"}"#)
            client.hear(#"{"type":"streamStateSet","id":4,"stream":7}"#)
            #expect(client.problems == [.streamChangeFailed] && client.sent.count == 4)
            client.connection.drop()
        }
    }

    @Test func `a change that finds no place among the requests keeps its value, and is no problem`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            client.connection.publish([TrackOffer(Track())]) { _ in }
            try client.acceptOffer(id: 2, stream: 7)
            for stream in 0..<SignallingSession.maximumPendingRequests {
                client.connection.request(.unsubscribe(StreamReference(stream: stream))) { _ in }
            }
            client.connection.setStream(7, StreamChange(isActive: false, extraValue: "a"))
            let track = client.connection.up?.tracks.first
            #expect(track?.offer.attributes == StreamAttributes(extraValue: "a", isActive: false))
            #expect(client.problems == [] && client.changes == [])
            client.connection.drop()
        }
    }

    @Test func `few messages are on their way at a time, at the server's pace, and those without a place fail at once`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            var results: [RoomError.Code?] = []
            for number in 0..<100 {
                client.connection.send(SendMessage(text: "\(number)")) { result in
                    if case .failure(let error) = result { results.append(error.code) } else { results.append(nil) }
                }
            }
            #expect(client.sent.count == 1 + 8 && results == Array(repeating: .tooManyRequests, count: 28))
            for id in 2..<18 { client.hear(#"{"type":"messageSent","id":\#(id)}"#) }
            #expect(client.sent.count == 1 + 20 && results.count == 28 + 16 && results.last == .some(nil))
            client.connection.drop()
            #expect(results.suffix(56) == ArraySlice(Array(repeating: .roomReleased, count: 56)))
        }
    }

    @Test func `a message succeeds when the server has it, and fails with the reason`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            var results: [RoomError.Code?] = []
            func send(_ text: String) {
                client.connection.send(SendMessage(text: text)) { result in
                    if case .failure(let error) = result { results.append(error.code) } else { results.append(nil) }
                }
            }
            send("too early")
            client.enter()
            send(String(repeating: "x", count: 16 * 1024 + 1))
            #expect(results == [.roomReleased, .userMessageTooLong] && client.sent.count == 1)
            for text in ["a", "b", "c", "d"] { send(text) }
            #expect(client.sent.dropFirst().first == #"{"id":2,"text":"a","type":"message"}"#)
            client.hear(#"{"type":"messageSent","id":2}"#)
            client.hear(#"{"type":"error","id":3,"code":"server.too-many-requests","message":"Later."}"#)
            client.hear(#"{"type":"pong","id":4}"#)
            #expect(results.dropFirst(2) == [nil, .tooManyRequests, .userMessageReplyInvalid])
            client.connection.drop()
            #expect(results.dropFirst(5) == [.roomReleased])
        }
    }

    @Test func `a message of another participant is an event, and one that cannot be read is a problem`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.join()
            client.hear(#"{"type":"userMessage","from":"p-2","text":"early","kind":"normal"}"#)
            client.hear(#"{"type":"userMessage","from":"p-3","text":"too","kind":"normal"}"#)
            #expect(!client.events.contains { if case .userMessage = $0 { true } else { false } })
            client.connection.secured()
            client.hear(#"{"type":"userMessage","from":"p-2","text":"hi","kind":"chat"}"#)
            client.hear(#"{"type":"userMessage","from":"p-2","text":"hi"}"#)
            let heard = client.events.compactMap { if case .userMessage(let message) = $0 { message } else { nil } }
            #expect(heard.map(\.text) == ["early", "too", "hi"])
            #expect(heard.last == UserMessage(from: "p-2", text: "hi", kind: "chat"))
            let order = client.events.compactMap { event -> String? in
                switch event {
                case .connected: "connected"
                case .userMessage(let message): message.text
                default: nil
                }
            }
            #expect(order.first == "connected")
            #expect(client.problems == [.userMessageInvalid])
            client.connection.drop()
        }
    }

    @Test func `a stream's new state is reported, and that of an unknown stream is not`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            client.hear(
                #"{"type":"participantEntered","participant":{"id":"p-2","streams":[{"id":5,"media":"video","#
                    + #""codec":"VP8","extraValue":"","state":"waiting","text":"a"}]}}"#)
            #expect(client.connection.stream(5)?.info.state == .waiting("a"))
            client.hear(#"{"type":"streamChanged","participant":"p-2","stream":5,"state":"waiting","text":"b"}"#)
            client.hear(#"{"type":"streamChanged","participant":"p-2","stream":6,"state":"waiting","text":"b"}"#)
            client.hear(#"{"type":"streamChanged","participant":"p-3","stream":5,"state":"waiting","text":"b"}"#)
            client.hear(#"{"type":"streamChanged","participant":"p-2","stream":5}"#)
            client.hear(#"{"type":"streamChanged","participant":"p-2","stream":5}"#)
            #expect(client.changed == [.waiting("b"), .live])
            client.hear(#"{"type":"streamChanged","participant":"p-2","stream":5,"active":false,"sort":"0 crop"}"#)
            #expect(client.reported.last == StreamChange(isActive: false))
            #expect(client.connection.stream(5)?.info.attributes == StreamAttributes(isActive: false))
            client.connection.drop()
        }
    }

    @Test func `a version that the client did not offer ends the connection`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.join(version: 2)
            #expect(client.ends == [.versionUnsupported])
            #expect(client.isClosed)
        }
    }

    @Test func `a stream that its publisher ends is reported and forgotten`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            client.hear(
                #"{"type":"participantEntered","participant":{"id":"p-2","streams":[{"id":5,"media":"video","#
                    + #""codec":"VP8","extraValue":""}]}}"#)
            client.hear(#"{"type":"streamUnpublished","participant":"p-2","stream":5}"#)
            client.hear(#"{"type":"streamUnpublished","participant":"p-2","stream":5}"#)
            #expect(client.unpublished == [5])
            #expect(client.connection.stream(5) == nil)
            client.connection.drop()
        }
    }

    @Test func `connections with the same seed choose the same numbers, and others choose others`()
        async throws
    {
        try await onLoop { loop in
            func offer(seed: UInt64) throws -> SessionDescription {
                let client = try Client(loop, seed: seed)
                client.join()
                client.connection.publish([TrackOffer(Track()), TrackOffer(Track(.opus))]) { _ in }
                client.connection.drop()
                return try #require(client.offers.last)
            }
            func numbers(_ offer: SessionDescription) -> [UInt64] {
                [offer.sessionID]
                    + offer.media.flatMap { $0.ssrcs + [$0.retransmissionSSRC].compactMap { $0 } }
                    .map { UInt64($0.rawValue) }
            }
            let first = numbers(try offer(seed: 7))
            #expect(first.count == 4)
            #expect(Set(first).count == 4)
            #expect(numbers(try offer(seed: 7)) == first)
            #expect(Set(numbers(try offer(seed: 8))).isDisjoint(with: first))
        }
    }

    @Test func `joining again takes the STUN and TURN servers of that join`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            client.connection.isRejoining = true
            client.connection.join(client.room, token: "a token", over: client.link)
            let server = #"{"urls":["turn:192.0.2.1:3478"],"username":"u","credential":"c"}"#
            client.hear(
                #"{"type":"joined","id":2,"version":1,"participant":"p-2","participants":[],"iceServers":[\#(server)]}"#
            )
            #expect(client.connection.servers.servers.count == 1)
            client.connection.drop()
        }
    }
}

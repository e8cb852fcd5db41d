import Foundation
import Testing

@testable import RoomProtocol

/// The messages of version 1, byte for byte. Old peers send and read them, so a text here never changes. A new field
/// gets a new text beside the old one.
@Suite struct GoldenMessageTests {
    private static let problem = RoomError(.noSuchStream, "No.")
    private static let stream = StreamInfo(id: 7, media: .video, codec: "VP8", extraValue: "camera")

    private static let link = {
        var quality = StreamQuality(stream: 7, cause: .link, bitsPerSecond: 640_000, lacksFrames: true)
        (quality.width, quality.height, quality.fullWidth, quality.fullHeight) = (320, 180, 640, 360)
        return quality
    }()

    private static let away = StreamInfo(
        id: 7, media: .video, codec: "VP8", extraValue: "camera", state: .waiting("camera unplugged"))

    private static let video = #"{"codec":"VP8","extraValue":"camera","id":7,"media":"video"}"#

    private static let awayVideo =
        #"{"codec":"VP8","extraValue":"camera","id":7,"media":"video","state":"waiting","text":"camera unplugged"}"#

    private static let fromClient: [(text: String, message: ClientMessage)] = [
        (
            #"{"id":1,"receivers":{"growth":3,"initial":1,"maximum":2},"room":"kitchen","#
                + #""token":"t","type":"join","version":1}"#,
            .join(Join(version: 1, token: "t", room: "kitchen", receivers: .init(initial: 1, maximum: 2, growth: 3)))
        ),
        (
            #"{"id":1,"room":"kitchen","token":"t","type":"join","version":1}"#,
            .join(Join(version: 1, token: "t", room: "kitchen"))
        ),
        (
            #"{"id":1,"room":"kitchen","token":"t","type":"join","version":1,"versions":[1,2]}"#,
            .join(Join(version: 1, versions: [1, 2], token: "t", room: "kitchen"))
        ),
        (
            #"{"id":1,"sdp":"v=0","streams":[{"extraValue":"camera","mid":"0"},{"mid":"1"}],"type":"publish"}"#,
            .publish(
                Publish(
                    sdp: "v=0",
                    streams: [.init(mid: "0", attributes: StreamAttributes(extraValue: "camera")), .init(mid: "1")]))
        ),
        (
            #"{"id":1,"sdp":"v=0","streams":[{"active":false,"alwaysOn":true,"mid":"0","sort":"5 fit"}],"type":"publish"}"#,
            .publish(
                Publish(
                    sdp: "v=0",
                    streams: [
                        .init(
                            mid: "0", attributes: StreamAttributes(isActive: false, isAlwaysOn: true, sort: "5 fit"))
                    ]))
        ),
        (
            #"{"active":false,"alwaysOn":true,"extraValue":"screen","id":1,"sort":"5 fit","stream":7,"type":"setStream"}"#,
            .setStream(
                SetStream(
                    stream: 7,
                    change: StreamChange(isActive: false, isAlwaysOn: true, extraValue: "screen", sort: "5 fit")))
        ),
        (
            #"{"active":true,"id":1,"state":"live","stream":7,"type":"setStream"}"#,
            .setStream(SetStream(stream: 7, change: StreamChange(state: .live, isActive: true)))
        ),
        (
            #"{"id":1,"state":"waiting","stream":7,"text":"camera unplugged","type":"setStream"}"#,
            .setStream(SetStream(stream: 7, change: StreamChange(state: .waiting("camera unplugged"))))
        ),
        (#"{"id":1,"stream":7,"type":"setStream"}"#, .setStream(SetStream(stream: 7, change: StreamChange()))),
        (
            #"{"id":1,"sdp":"v=0","streams":[{"mid":"0","spatialLayers":3}],"type":"publish"}"#,
            .publish(Publish(sdp: "v=0", streams: [.init(mid: "0", spatialLayers: 3)]))
        ),
        (
            #"{"id":1,"sdp":"v=0","streams":[{"mid":"0","record":true}],"type":"publish"}"#,
            .publish(Publish(sdp: "v=0", streams: [.init(mid: "0", record: true)]))
        ),
        (#"{"id":1,"streams":[7,8],"type":"unpublish"}"#, .unpublish(StreamReferences(streams: [7, 8]))),
        (
            #"{"id":1,"state":"waiting","stream":7,"text":"camera unplugged","type":"setStreamState"}"#,
            .setStreamState(SetStreamState(stream: 7, state: .waiting("camera unplugged")))
        ),
        (
            #"{"id":1,"reason":"network","stream":7,"type":"streamReduced"}"#,
            .streamReduced(StreamReduced(stream: 7, reason: .network))
        ),
        (#"{"id":1,"stream":7,"type":"streamReduced"}"#, .streamReduced(StreamReduced(stream: 7, reason: nil))),
        (#"{"id":1,"stream":7,"type":"setStreamState"}"#, .setStreamState(SetStreamState(stream: 7, state: .live))),
        (
            #"{"id":1,"revision":2,"sdp":"v=0","session":"down","type":"answer"}"#,
            .answer(Description(session: .down, sdp: "v=0", revision: 2))
        ),
        (
            #"{"candidate":"candidate:1","id":1,"session":"up","type":"candidate"}"#,
            .candidate(Candidate(session: .up, candidate: "candidate:1"))
        ),
        (#"{"id":1,"stream":3,"type":"subscribe"}"#, .subscribe(ViewOfStream(stream: 3))),
        (
            #"{"height":90,"id":1,"priority":2,"profile":"low","stream":3,"type":"setView","width":160}"#,
            .setView(
                ViewOfStream(stream: 3, view: StreamView(profile: .low, width: 160, height: 90, priority: 2)))
        ),
        (
            #"{"id":1,"paused":true,"profile":"mid","stream":3,"type":"setView"}"#,
            .setView(ViewOfStream(stream: 3, view: StreamView(profile: .mid, isPaused: true)))
        ),
        (#"{"id":1,"stream":3,"type":"unsubscribe"}"#, .unsubscribe(StreamReference(stream: 3))),
        (
            #"{"id":1,"kind":"chat","text":"hi","to":["p","q"],"type":"message"}"#,
            .message(SendMessage(targets: ["p", "q"], text: "hi", kind: "chat"))
        ),
        (#"{"id":1,"text":"","type":"message"}"#, .message(SendMessage(text: "", kind: ""))),
        (#"{"id":1,"type":"ping"}"#, .ping),
        (#"{"id":1,"type":"leave"}"#, .leave),
    ]

    private static let fromServer: [(text: String, message: ServerMessage)] = [
        (
            #"{"id":1,"participant":"p","participants":[{"id":"q","streams":[\#(video)]}],"#
                + #""type":"joined","version":1}"#,
            .joined(Joined(version: 1, participant: "p", participants: [ParticipantInfo(id: "q", streams: [stream])]))
        ),
        (
            #"{"id":1,"sdp":"v=0","streams":[{"mid":"0","stream":7}],"type":"published"}"#,
            .published(Published(sdp: "v=0", streams: [.init(mid: "0", stream: 7)]))
        ),
        (
            #"{"id":1,"participant":"p","participants":[{"id":"q","streams":[\#(awayVideo)]}],"#
                + #""type":"joined","version":1}"#,
            .joined(Joined(version: 1, participant: "p", participants: [ParticipantInfo(id: "q", streams: [away])]))
        ),
        (
            #"{"iceServers":[{"credential":"c","urls":["turn:a"],"username":"u"}],"id":1,"participant":"p","#
                + #""participants":[],"type":"joined","version":1}"#,
            .joined(
                Joined(
                    version: 1, participant: "p", participants: [],
                    iceServers: [ICEServerInfo(urls: ["turn:a"], username: "u", credential: "c")]))
        ),
        (
            #"{"iceServers":[{"urls":["stun:a"]}],"id":1,"type":"iceServers"}"#,
            .iceServers(ICEServersRenewed(iceServers: [ICEServerInfo(urls: ["stun:a"])]))
        ),
        (#"{"id":1,"streams":[7,8],"type":"unpublished"}"#, .unpublished(StreamReferences(streams: [7, 8]))),
        (#"{"id":1,"stream":7,"type":"streamSet"}"#, .streamSet(StreamReference(stream: 7))),
        (#"{"id":1,"stream":7,"type":"streamStateSet"}"#, .streamStateSet(StreamReference(stream: 7))),
        (#"{"id":1,"stream":7,"type":"viewSet"}"#, .viewSet(StreamReference(stream: 7))),
        (
            #"{"bitsPerSecond":340000,"id":1,"layers":["q","h"],"stream":7,"type":"streamLimit"}"#,
            .streamLimit(StreamLimit(stream: 7, bitsPerSecond: 340_000, layers: ["q", "h"]))
        ),
        (
            #"{"bitsPerSecond":640000,"cause":"link","fullHeight":360,"fullWidth":640,"height":180,"id":1,"#
                + #""lacksFrames":true,"stream":7,"type":"streamQuality","width":320}"#,
            .streamQuality(link)
        ),
        (
            #"{"cause":"publisher","id":1,"reason":"processor","stream":7,"type":"streamQuality"}"#,
            .streamQuality(StreamQuality(stream: 7, cause: .publisher, reason: .processor))
        ),
        (#"{"id":1,"stream":7,"type":"streamQuality"}"#, .streamQuality(StreamQuality(stream: 7))),
        (#"{"id":1,"mid":"4","stream":7,"type":"subscribed"}"#, .subscribed(Subscribed(stream: 7, mid: "4"))),
        (
            #"{"firstSequenceNumber":65535,"id":1,"mid":"4","stream":7,"type":"subscribed"}"#,
            .subscribed(Subscribed(stream: 7, mid: "4", firstSequenceNumber: 65535))
        ),
        (#"{"id":1,"stream":7,"type":"unsubscribed"}"#, .unsubscribed(StreamReference(stream: 7))),
        (
            #"{"from":"p","id":1,"kind":"normal","text":"hi","type":"userMessage"}"#,
            .userMessage(UserMessage(from: "p", text: "hi", kind: "normal"))
        ),
        (#"{"id":1,"type":"messageSent"}"#, .messageSent),
        (#"{"id":1,"type":"pong"}"#, .pong),
        (#"{"id":1,"type":"left"}"#, .left),
        (#"{"code":"1328","id":1,"message":"No.","type":"error"}"#, .error(Problem(problem))),
        (
            #"{"id":1,"revision":1,"sdp":"v=0","session":"down","type":"offer"}"#,
            .offer(Description(session: .down, sdp: "v=0", revision: 1))
        ),
        (
            #"{"candidate":"","id":1,"session":"down","type":"candidate"}"#,
            .candidate(Candidate(session: .down, candidate: ""))
        ),
        (
            #"{"id":1,"participant":{"id":"q","streams":[]},"type":"participantEntered"}"#,
            .participantEntered(ParticipantEntered(participant: ParticipantInfo(id: "q", streams: [])))
        ),
        (
            #"{"id":1,"participant":"q","type":"participantLeft"}"#,
            .participantLeft(ParticipantReference(participant: "q"))
        ),
        (
            #"{"id":1,"participant":"q","stream":\#(video),"type":"streamPublished"}"#,
            .streamPublished(StreamPublished(participant: "q", stream: stream))
        ),
        (
            #"{"id":1,"participant":"q","stream":7,"type":"streamUnpublished"}"#,
            .streamUnpublished(StreamUnpublished(participant: "q", stream: 7))
        ),
        (
            #"{"id":1,"participant":"q","state":"waiting","stream":7,"text":"camera unplugged","type":"streamChanged"}"#,
            .streamChanged(StreamChanged(participant: "q", stream: 7, state: .waiting("camera unplugged")))
        ),
        (
            #"{"id":1,"participant":"q","stream":7,"type":"streamChanged"}"#,
            .streamChanged(StreamChanged(participant: "q", stream: 7, state: .live))
        ),
        (
            #"{"active":false,"alwaysOn":true,"extraValue":"","id":1,"participant":"q","sort":"5 fit","state":"waiting","#
                + #""stream":7,"text":"","type":"streamChanged"}"#,
            .streamChanged(
                StreamChanged(
                    participant: "q", stream: 7, state: .waiting(""),
                    change: StreamChange(isActive: false, isAlwaysOn: true, extraValue: "", sort: "5 fit")))
        ),
        (
            #"{"id":1,"participant":"q","stream":{"active":false,"alwaysOn":true,"codec":"opus","extraValue":"","id":8,"#
                + #""media":"audio","sort":"5 fit"},"type":"streamPublished"}"#,
            .streamPublished(
                StreamPublished(
                    participant: "q",
                    stream: StreamInfo(
                        id: 8, media: .audio, codec: "opus",
                        attributes: StreamAttributes(isActive: false, isAlwaysOn: true, sort: "5 fit"))))
        ),
        (
            #"{"codec":"opus","id":1,"media":"audio","mid":"0","participant":"q","stream":8,"#
                + #""type":"receiverAssigned"}"#,
            .receiverAssigned(ReceiverAssigned(mid: "0", media: .audio, stream: 8, participant: "q", codec: "opus"))
        ),
        (
            #"{"id":1,"media":"video","mid":"0","type":"receiverAssigned"}"#,
            .receiverAssigned(ReceiverAssigned(mid: "0", media: .video, stream: nil, participant: nil, codec: nil))
        ),
        (
            #"{"bitsPerSecond":340000,"id":1,"stream":7,"type":"streamLimit"}"#,
            .streamLimit(StreamLimit(stream: 7, bitsPerSecond: 340_000))
        ),
        (
            #"{"id":1,"stream":7,"type":"streamLimit"}"#, .streamLimit(StreamLimit(stream: 7, bitsPerSecond: nil))
        ),
        (
            #"{"code":"1328","id":1,"message":"No.","reason":"kicked","type":"closed"}"#,
            .closed(Closing(reason: .kicked, error: problem))
        ),
    ]

    @Test func `a client's messages are written and read as in version 1`() throws {
        for (text, message) in Self.fromClient {
            #expect(Envelope(id: 1, message).json() == text)
            for text in [text, later(text)] {
                #expect(try Envelope<ClientMessage>(json: Data(text.utf8)) == Envelope(id: 1, message), "\(text)")
            }
        }
    }

    @Test func `a server's messages are written and read as in version 1`() throws {
        for (text, message) in Self.fromServer {
            #expect(Envelope(id: 1, message).json() == text)
            for text in [text, later(text)] {
                #expect(try Envelope<ServerMessage>(json: Data(text.utf8)) == Envelope(id: 1, message), "\(text)")
            }
        }
    }

    @Test func `a closing reason of a later version is understood`() throws {
        let text = #"{"code":"1302","message":"Moved.","reason":"moved","type":"closed"}"#
        let closing = Closing(reason: .disconnected, error: RoomError(.roomReleased, "Moved."))
        #expect(try Envelope<ServerMessage>(json: Data(text.utf8)) == Envelope(.closed(closing)))
    }

    @Test(arguments: [
        #""state":"live""#, #""state":"live","text":"ignored""#, #""text":"ignored""#, #""state":"frozen","text":"x""#,
        #""state":null"#,
    ])
    func `a state other than waiting means live, also one of a later version`(fields: String) throws {
        let text = #"{"id":1,"type":"setStreamState","stream":7,\#(fields)}"#
        #expect(
            try Envelope<ClientMessage>(json: Data(text.utf8))
                == Envelope(id: 1, .setStreamState(SetStreamState(stream: 7, state: .live))))
    }

    @Test(arguments: [
        #""state":null"#, #""text":"x""#, #""active":null,"sort":null,"extraValue":null,"alwaysOn":null"#,
    ])
    func `a change leaves out what it does not change`(fields: String) throws {
        let text = #"{"id":1,"type":"setStream","stream":7,\#(fields)}"#
        #expect(
            try Envelope<ClientMessage>(json: Data(text.utf8))
                == Envelope(id: 1, .setStream(SetStream(stream: 7, change: StreamChange()))))
    }

    @Test func `a changed stream without a state is live, as for earlier versions`() throws {
        let text = #"{"type":"streamChanged","participant":"q","stream":7,"active":false}"#
        #expect(
            try Envelope<ServerMessage>(json: Data(text.utf8))
                == Envelope(
                    .streamChanged(
                        StreamChanged(participant: "q", stream: 7, state: .live, change: StreamChange(isActive: false)))
                ))
    }

    @Test func `a cause of a later version counts as none`() throws {
        let text = #"{"id":1,"type":"streamQuality","stream":7,"cause":"moon","reason":"tide"}"#
        #expect(
            try Envelope<ServerMessage>(json: Data(text.utf8))
                == Envelope(id: 1, .streamQuality(StreamQuality(stream: 7))))
    }

    /// The same from a later version, which has more fields in every object.
    private func later(_ text: String) -> String { text.replacing("{", with: #"{"novelty":[{"a":null}],"#) }

    /// Drafts of WebRTC had credentials that are no text.
    @Test func `ICE servers of an unknown form are left out, and the others count`() throws {
        let list =
            #"[{"urls":7},{"urls":"stun:a"},null,{"urls":["turn:b"],"username":"u","credential":{"macKey":"k"}},"#
            + #"{"urls":["turn:c"],"username":"u","credential":"c","credentialType":"password"}]"#
        let expected = [
            ICEServerInfo(urls: ["stun:a"]), ICEServerInfo(urls: ["turn:c"], username: "u", credential: "c"),
        ]
        for (text, servers) in [(list, expected), (#"{"urls":"stun:a"}"#, nil), ("null", nil)] {
            let joined = try Envelope<ServerMessage>(
                json: Data(
                    #"{"iceServers":\#(text),"id":1,"participant":"p","participants":[],"type":"joined","version":1}"#
                        .utf8))
            guard case .joined(let body) = joined.message else {
                Issue.record("\(joined)")
                continue
            }
            #expect(body.iceServers == servers, "\(text)")
            let renewed = try Envelope<ServerMessage>(json: Data(#"{"iceServers":\#(text),"type":"iceServers"}"#.utf8))
            #expect(renewed.message == .iceServers(ICEServersRenewed(iceServers: servers ?? [])), "\(text)")
        }
    }
}

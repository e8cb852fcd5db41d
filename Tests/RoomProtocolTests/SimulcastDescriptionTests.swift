import Foundation
import RTP
import Testing

@testable import RoomProtocol

@Suite struct SimulcastDescriptionTests {
    private static let extensions = [
        "extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid", "extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
        "extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id",
    ]

    private func offer(_ attributes: [String], _ extensions: [String] = extensions) throws -> SessionDescription {
        let lines =
            ["v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "m=video 9 UDP/TLS/RTP/SAVPF 96 97", "a=mid:0"]
            + ["a=sendonly", "a=rtcp-mux", "a=rtpmap:96 VP8/90000", "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96"]
            + (attributes + extensions).map { "a=\($0)" }
        return try SessionDescription(parsing: lines.joined(separator: "\r\n") + "\r\n")
    }

    private static let layers = ["rid:q send", "rid:h send", "rid:f send", "simulcast:send q;h;f"]

    private func answer(to offer: SessionDescription) throws -> SessionDescription {
        let transport = TransportDescription(iceUfrag: "", icePwd: "", fingerprints: [], setup: .passive)
        return UpDescription.answer(
            to: offer, taking: [try UpDescription.stream("0", of: offer)], sessionID: 1, transport: transport)
    }

    @Test func `an offer with simulcast is answered with the same rids and their extensions`() throws {
        let offer = try offer(Self.layers + ["ssrc:5 cname:c"])
        let stream = try UpDescription.stream("0", of: offer)
        #expect(stream.layers == ["q", "h", "f"] && stream.ssrc == nil)
        #expect(stream.extensions == HeaderExtensionIDs(mid: 4, streamID: 10, repairedStreamID: 11))
        let media = try #require(try answer(to: offer).media.first)
        #expect(media.simulcast == Simulcast(isSending: false, rids: ["q", "h", "f"]))
        #expect(media.extensions.map(\.id) == [4, 10, 11])
    }

    @Test func `an offer without simulcast has one layer, and the rid's extensions are not accepted`() throws {
        let offer = try offer(["ssrc:5 cname:c", "rid:q send"])
        let stream = try UpDescription.stream("0", of: offer)
        #expect(stream.layers.isEmpty && stream.ssrc == SSRC(5))
        #expect(stream.extensions == HeaderExtensionIDs(mid: 4))
        let media = try #require(try answer(to: offer).media.first)
        #expect(media.simulcast == nil && media.extensions.map(\.id) == [4])
    }

    @Test func `an m-line that does not send keeps its layers for a later stream`() throws {
        var offer = try offer(Self.layers)
        offer.media[0].direction = .inactive
        let transport = TransportDescription(iceUfrag: "", icePwd: "", fingerprints: [], setup: .passive)
        let answer = UpDescription.answer(to: offer, taking: [], sessionID: 1, transport: transport)
        #expect(answer.media[0].direction == .inactive)
        #expect(answer.media[0].simulcast == Simulcast(isSending: false, rids: ["q", "h", "f"]))
    }

    @Test func `simulcast of more than three layers, or without names in the packets, is refused`() throws {
        func refusal(_ offer: SessionDescription) -> RoomError.Code? {
            do {
                _ = try UpDescription.stream("0", of: offer)
                return nil
            } catch {
                return error.code
            }
        }
        let four = (0..<4).map { "rid:r\($0) send" } + ["simulcast:send r0;r1;r2;r3"]
        #expect(refusal(try offer(four)) == .publishRefused)
        #expect(refusal(try offer(Self.layers, Array(Self.extensions.prefix(1)))) == .publishRefused)
        #expect(refusal(try offer(Self.layers, [])) == .publishRefused)
        #expect(refusal(try offer(Self.layers)) == nil)
    }

    @Test func `views out of range are refused, and unknown profiles mean high`() throws {
        for view in [
            StreamView(width: -1), StreamView(height: 40000), StreamView(priority: 0), StreamView(priority: .nan),
        ] {
            #expect(throws: RoomError.self) { try view.validate() }
        }
        try StreamView(profile: .mid, width: 0, height: 32768, priority: 100).validate()
        let text = #"{"type":"setView","id":1,"stream":3,"profile":"ultra","width":640}"#
        #expect(
            try Envelope<ClientMessage>(json: .init(text.utf8)).message
                == .setView(ViewOfStream(stream: 3, view: StreamView(width: 640))))
    }
}

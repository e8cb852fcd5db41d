import RTP
import Testing

@testable import RoomProtocol

/// The negotiation of RED and DTX.
@Suite struct RedundancyTests {
    private let transport = TransportDescription(
        iceUfrag: "abcd", icePwd: "abcdefghijklmnopqrstuv",
        fingerprints: [Fingerprint(algorithm: "sha-256", digest: Array(repeating: 7, count: 32))], setup: .actpass)

    private func offer() throws -> SessionDescription {
        try SessionDescription(
            parsing: UpDescription.offer(
                sessionID: 1, version: 1,
                senders: [Sender(mid: "0", codec: .opus, ssrc: SSRC(5), retransmissionSSRC: nil)], transport: transport,
                cname: "me"
            ).serialized())
    }

    private func answer(to offer: SessionDescription) throws -> MediaDescription {
        let stream = try UpDescription.stream("0", of: offer)
        let answer = UpDescription.answer(to: offer, taking: [stream], sessionID: 2, transport: transport)
        return try #require(try SessionDescription(parsing: answer.serialized())[mid: "0"])
    }

    @Test func `a publisher and a server agree on RED`() throws {
        let offer = try offer()
        #expect(try UpDescription.stream("0", of: offer).negotiated.redundancyPayloadTypes == [111: 63])
        let answer = try answer(to: offer)
        // Behind Opus, so that a browser does not send it at once.
        #expect(answer.formats.map(\.encoding) == ["opus", "red"] && answer.formats[1].parameters == "111/111")
        #expect(UpDescription.acceptedRedundancy(of: answer) == [111: 63])
    }

    @Test func `a publisher without RED is answered without`() throws {
        var offer = try offer()
        offer.media[0].formats.removeAll { $0.encoding == "red" }
        let answer = try answer(to: offer)
        #expect(answer.formats.map(\.encoding) == ["opus"])
        #expect(UpDescription.acceptedRedundancy(of: answer).isEmpty)
    }

    @Test(arguments: ["111/0", "111", "", "0/111", "111/111/x", "111/"])
    func `RED with other packets than those of Opus is not taken`(parameters: String) throws {
        var offer = try offer()
        offer.media[0].formats[1].parameters = parameters
        #expect(try UpDescription.stream("0", of: offer).negotiated.redundancyPayloadType == nil)
    }

    @Test func `RED on its own is no audio`() throws {
        var offer = try offer()
        offer.media[0].formats.removeFirst()
        #expect(throws: RoomError.self) { try UpDescription.stream("0", of: offer) }
    }

    @Test func `a viewer and a server agree on RED`() throws {
        let offer = try SessionDescription(
            parsing: DownDescription.offer(
                sessionID: 1, revision: 1,
                receivers: [Receiver(mid: "0", media: .audio, ssrc: SSRC(10), retransmissionSSRC: nil)],
                transport: transport, cname: "server"
            ).serialized())
        let answer = try SessionDescription(
            parsing: DownDescription.answer(to: offer, sessionID: 2, transport: transport).serialized())
        let codecs = NegotiatedCodec.all(in: try #require(answer[mid: "0"]))
        #expect(codecs.map(\.codec) == [.opus] && codecs[0].redundancyPayloadTypes == [111: 63])
    }

    @Test func `an answer wishes DTX if the offer does`() throws {
        var offer = try offer()
        #expect(try answer(to: offer).formats[0].parameter("usedtx") == nil)
        offer.media[0].formats[0].parameters += ";usedtx=1"
        #expect(try answer(to: offer).formats[0].parameter("usedtx") == "1")
    }
}

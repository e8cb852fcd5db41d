import RTP
import Testing
import TestSupport

@Suite struct SessionDescriptionTests {
    private func code(_ text: String) -> String? {
        do {
            _ = try SessionDescription(parsing: text)
            return nil
        } catch {
            return error.code
        }
    }

    private func minimal(_ session: String = "", _ media: String = "") -> String {
        "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n\(session)m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n\(media)"
    }

    @Test("Chromium's offer is parsed: transport, formats, extensions, sources")
    func chromium() throws {
        let offer = try SessionDescription(parsing: chromiumOffer)
        #expect(offer.sessionID == 4_611_731_400_430_051_336)
        #expect(offer.version == 2)
        #expect(offer.bundle == ["0", "1", "2"])
        #expect(offer.media.map(\.kind) == [.audio, .video, .application])
        let transport = try #require(offer.transport)
        #expect(transport.iceUfrag == "Zk3v")
        #expect(transport.icePwd == "pFGbMt1LzTnXtUqNc1eVwTaR")
        #expect(transport.setup == .actpass)
        #expect(transport.fingerprints.map(\.algorithm) == ["sha-256"])
        #expect(transport.fingerprints.first?.digest.count == 32)

        let audio = try #require(offer[mid: "0"])
        let opus = try #require(audio.formats(encoding: "OPUS").first)
        #expect(opus.payloadType == 111)
        #expect(opus.clockRate == 48000)
        #expect(opus.channels == 2)
        #expect(opus.parameter("useinbandfec") == "1")
        #expect(audio.direction == .sendonly)
        #expect(
            HeaderExtensionIDs(audio.extensions)
                == HeaderExtensionIDs(mid: 4, transportNumber: 3, audioLevel: 1, sendTime: 2))
        #expect(audio.ssrcs == [SSRC(3_510_681_183)])
        #expect(audio.retransmissionSSRC == nil)

        let video = try #require(offer[mid: "1"])
        #expect(video.formats.map(\.payloadType) == [96, 97, 103, 104, 35, 36, 114, 115])
        #expect(video.format(payloadType: 96)?.feedback.contains("nack pli") == true)
        #expect(video.retransmissionPayloadType(for: 96) == 97)
        #expect(video.retransmissionPayloadType(for: 103) == 104)
        #expect(video.format(payloadType: 103)?.parameter("packetization-mode") == "1")
        #expect(video.ssrcs == [SSRC(2_231_627_014)])
        #expect(video.retransmissionSSRC == SSRC(632_943_048))
        #expect(video.cname == "loqPWNg7JMmrFUnr")
        #expect(video.msid == "2d5c1a3e-stream 9f0c1d2e-video")
    }

    @Test("Chromium's offer survives writing and reading, and so does the written text")
    func roundTrip() throws {
        let offer = try SessionDescription(parsing: chromiumOffer)
        let written = offer.serialized()
        #expect(try SessionDescription(parsing: written) == offer)
        #expect(try SessionDescription(parsing: written).serialized() == written)
    }

    @Test("A refused data channel keeps its m-line with port 0")
    func refusal() throws {
        var answer = try SessionDescription(parsing: chromiumOffer)
        answer.media[2].isRejected = true
        answer.bundle = nil
        let text = answer.serialized()
        #expect(text.contains("m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\n"))
        #expect(text.contains("a=group:BUNDLE 0 1\r\n"))
        #expect(try SessionDescription(parsing: text).media[2].isRejected)
    }

    @Test("A description built in code survives writing and reading, including candidates")
    func built() throws {
        let fingerprint = try #require(
            Fingerprint("SHA-256 " + [String](repeating: "0A", count: 32).joined(separator: ":")))
        let transport = TransportDescription(
            iceUfrag: "abcd", icePwd: "0123456789012345678901", fingerprints: [fingerprint], setup: .active,
            candidates: ["candidate:1 1 UDP 2130706431 127.0.0.1 50000 typ host"], endOfCandidates: true)
        let video = MediaDescription(
            kind: .video, mid: "v0", direction: .recvonly,
            formats: [
                PayloadFormat(payloadType: 96, encoding: "VP8", clockRate: 90000, feedback: ["nack", "nack pli"]),
                .retransmission(of: 96, as: 97),
            ], extensions: [HeaderExtension(id: 4, .mid)], ssrcs: [SSRC(1), SSRC(3)],
            retransmissionSSRC: SSRC(2), cname: "c", msid: "s t", transport: transport)
        var description = SessionDescription(sessionID: 5, media: [video])
        let read = try SessionDescription(parsing: description.serialized())
        #expect(read.media == [video])
        #expect(read.bundle == ["v0"])
        description.bundle = ["v0"]
        #expect(read == description)
        description.media[0].transport.isLite = true
        #expect(description.serialized().split(separator: "\r\n").count { $0 == "a=ice-lite" } == 1)
        #expect(try SessionDescription(parsing: description.serialized()) == description)
        description.media[0].isMuxed = false
        #expect(try SessionDescription(parsing: description.serialized()) == description)
    }

    private func description(of count: Int, candidates: Int) -> SessionDescription {
        let transport = TransportDescription(
            iceUfrag: "abcd", icePwd: "0123456789012345678901", fingerprints: [], setup: .actpass,
            candidates: (1...candidates).map { "candidate:\($0) 1 UDP 2130706431 2001:db8::\($0) 50000 typ host" },
            endOfCandidates: true)
        let media = (0..<count).map {
            MediaDescription(
                kind: .video, mid: "\($0)", direction: .sendonly,
                formats: [PayloadFormat(payloadType: 96, encoding: "VP8", clockRate: 90000)], transport: transport)
        }
        return SessionDescription(sessionID: 5, bundle: media.map(\.mid), media: media)
    }

    private func candidateLines(_ text: String) -> Int {
        text.split(separator: "\r\n").count { $0.hasPrefix("a=candidate:") }
    }

    @Test func `eight candidates of 61 bundled m-lines are written once, and read as those of all`() throws {
        let description = description(of: 61, candidates: 8)
        let text = description.serialized()
        #expect(candidateLines(text) == 8)
        #expect(try SessionDescription(parsing: text) == description)
    }

    @Test func `candidates are written in each m-line whose transport is another one`() throws {
        var description = description(of: 4, candidates: 2)
        description.bundle = ["1", "0", "3"]
        description.media[3].transport.iceUfrag = "efgh"
        // Those of 1, which begins the group, of 2 outside of it, and of 3.
        #expect(candidateLines(description.serialized()) == 6)
        #expect(try SessionDescription(parsing: description.serialized()) == description)
        // Nobody reads candidates of an m-line that is refused.
        description.media[1].isRejected = true
        #expect(candidateLines(description.serialized()) == 8)
        #expect(try SessionDescription(parsing: description.serialized()) == description)
    }

    @Test func `candidates in each bundled m-line are read, as other programs write them`() throws {
        let media = ["a", "v"].map { mid in
            "a=mid:\(mid)\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"
                + "a=candidate:\(mid) 1 UDP 1 127.0.0.1 1 typ host\r\na=end-of-candidates\r\n"
        }
        let text = minimal("a=group:BUNDLE a v\r\n", media[0]) + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" + media[1]
        let read = try SessionDescription(parsing: text)
        #expect(read.media.map(\.transport.candidates.count) == [1, 1])
        #expect(read.media[1].transport.candidates[0].hasPrefix("candidate:v "))
        #expect(try SessionDescription(parsing: read.serialized()) == read)
    }

    @Test("Lines may end in LF only, as in pasted text")
    func lineFeeds() throws {
        let text = chromiumOffer.replacing("\r\n", with: "\n")
        #expect(try SessionDescription(parsing: text) == SessionDescription(parsing: chromiumOffer))
    }

    @Test("Transport attributes of the session apply to all media; a fingerprint of the media wins")
    func sessionLevel() throws {
        let text = minimal(
            "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\na=setup:passive\r\na=fingerprint:sha-256 AA\r\n",
            "a=fingerprint:sha-256 BB\r\n")
        let transport = try #require(try SessionDescription(parsing: text).transport)
        #expect(transport.iceUfrag == "abcd")
        #expect(transport.setup == .passive)
        #expect(transport.fingerprints == [Fingerprint(algorithm: "sha-256", digest: [0xbb])])
    }

    @Test("Bundled media without transport attributes uses those of the first; bundle-only is not a refusal")
    func bundleOnly() throws {
        let text =
            minimal("a=group:BUNDLE a v\r\n", "a=mid:a\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n")
            + "m=video 0 UDP/TLS/RTP/SAVPF 96\r\na=mid:v\r\na=bundle-only\r\n"
        let read = try SessionDescription(parsing: text)
        #expect(read.media[1].transport.iceUfrag == "abcd")
        #expect(!read.media[1].isRejected)
    }

    @Test("Unbundled m-lines and a separate RTCP port are reported with a fix")
    func separateTransports() throws {
        #expect(try SessionDescription(parsing: chromiumOffer).separateTransports == nil)
        let video = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:v\r\na=rtcp-mux\r\n"
        func problem(_ group: String, _ audio: String, _ others: String = "") throws -> String? {
            try SessionDescription(parsing: minimal(group, "a=mid:a\r\n" + audio) + others).separateTransports
        }
        #expect(try problem("", "a=rtcp-mux\r\n") == nil, "one m-line has one transport")
        #expect(try problem("", "")?.contains("'a=rtcp-mux'") == true)
        #expect(try problem("a=group:BUNDLE a v\r\n", "a=rtcp-mux\r\n", video) == nil)
        #expect(try problem("a=group:BUNDLE a v\r\n", "", video)?.contains("'a'") == true)
        #expect(try problem("", "a=rtcp-mux\r\n", video)?.contains("not bundled") == true)
        #expect(try problem("a=group:BUNDLE a\r\n", "a=rtcp-mux\r\n", video)?.contains("'v'") == true)
        let refused = video.replacing("m=video 9", with: "m=video 0")
        #expect(try problem("a=group:BUNDLE a\r\n", "a=rtcp-mux\r\n", refused) == nil)
    }

    @Test("Header extensions that the one-byte form cannot carry are not negotiated")
    func extensionIDs() throws {
        let lines = ["1", "14/recvonly", "15", "16", "255", "4096"].map { "a=extmap:\($0) urn:x\r\n" }.joined()
        let read = try SessionDescription(parsing: minimal("", lines))
        #expect(read.media[0].extensions.map(\.id) == [1, 14])
    }

    @Test func `directions of header extensions are read and written, and unknown ones are not negotiated`() throws {
        let ids = ["1", "2/sendrecv", "3/sendonly", "4/recvonly", "5/inactive", "6/both", "7/", "8/sendonly/recvonly"]
        let lines = ids.map { "a=extmap:\($0) urn:x with attributes\r\n" }.joined()
        let read = try SessionDescription(parsing: minimal("", lines))
        let expected: [MediaDirection] = [.sendrecv, .sendrecv, .sendonly, .recvonly, .inactive]
        #expect(read.media[0].extensions == expected.enumerated().map { .init(id: UInt8($0 + 1), uri: "urn:x", $1) })
        let again = try SessionDescription(parsing: read.serialized())
        #expect(again.media[0].extensions == read.media[0].extensions)
    }

    @Test("No value can add a line")
    func injection() throws {
        var description = try SessionDescription(parsing: chromiumOffer)
        description.media[0].cname = "x\r\na=fingerprint:sha-256 00"
        description.media[0].msid = "s\nm=video 9 RTP/AVP 0"
        let read = try SessionDescription(parsing: description.serialized())
        #expect(read.media.count == 3)
        #expect(read.media[0].transport.fingerprints.count == 1)
    }

    @Test("S7: too long descriptions, too many media descriptions and candidates are refused")
    func tooLarge() {
        let long = String(repeating: "y", count: SessionDescription.maximumLength)
        #expect(code(minimal("a=x:" + long + "\r\n")) == "sdp.too-large")
        let line = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"
        #expect(code(minimal("", String(repeating: line, count: 63))) == nil)
        #expect(code(minimal("", String(repeating: line, count: 64))) == "sdp.too-large")
        let candidate = "a=candidate:1 1 UDP 1 127.0.0.1 1 typ host\r\n"
        #expect(code(minimal("", String(repeating: candidate, count: 400))) == nil)
        #expect(code(minimal("", String(repeating: candidate, count: 401))) == "sdp.too-large")
        #expect(code(minimal("", String(repeating: "a=extmap:1 urn:x\r\n", count: 500))) == "sdp.too-large")
        let sources = (0..<500).map { "a=ssrc:\($0) cname:x\r\n" }.joined()
        #expect(code(minimal("", sources)) == "sdp.too-large")
    }

    @Test("S7: 128 KiB of the worst lines are parsed or refused in well under a second")
    func boundedTime() {
        let start = ContinuousClock.now
        for line in [
            "\r\n", "a=\r\n", "a=group:BUNDLE x\r\n", "a=ssrc-group:FID 1 2\r\n", "m=\r\n", "=\r\n",
            "a=rtcp-fb:* x\r\n",
        ] {
            _ = code(minimal("", String(repeating: line, count: 130_000 / line.utf8.count)))
            _ = code("v=0\r\n" + String(repeating: line, count: 130_000 / line.utf8.count))
        }
        _ = code("m=video 9 RTP/AVP " + String(repeating: "1 ", count: 65000))
        #expect(ContinuousClock.now - start < .seconds(5))
    }

    @Test(
        "A malformed line is refused and quoted",
        arguments: [
            "a=ice-ufrag:abc", "a=ice-pwd:short", "a=fingerprint:sha-256 XY", "a=setup:holdconn", "a=ssrc:-1 cname:x",
            "a=rtpmap:111 opus", "a=rtpmap:x opus/48000", "a=rtpmap:111 opus/48000/0", "a=extmap:0 urn:x", "a=mid:",
            "nonsense", "m=audio 70000 UDP/TLS/RTP/SAVPF 0", "m=audio 9", "m=audio 9 UDP/TLS/RTP/SAVPF 128",
            "m=audio 9 UDP/TLS/RTP/SAVPF 0 0", "o=- x 1 IN IP4 127.0.0.1",
        ])
    func malformed(line: String) throws {
        #expect(code(minimal("", line + "\r\n")) == "sdp.malformed")
        do {
            _ = try SessionDescription(parsing: minimal("", line + "\r\n"))
        } catch {
            #expect(error.message.contains("\""))
            #expect(error.description.hasSuffix("[sdp.malformed]"))
        }
    }

    @Test("Empty text and foreign text are refused", arguments: ["", "\r\n", "hello", "v=1\r\n"])
    func noDescription(text: String) {
        #expect(code(text) == "sdp.malformed")
    }

    @Test("A duplicate mid is refused")
    func midTwice() {
        #expect(code(minimal("", "a=mid:a\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:a\r\n")) == "sdp.malformed")
    }

    @Test("3,000 mutated descriptions never trap, and accepted ones survive writing and reading")
    func fuzz() throws {
        var random = Seeded(7)
        let bytes = Array(chromiumOffer.utf8)
        var accepted = 0
        for _ in 0..<3000 {
            var mutated = bytes
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let at = Int.random(in: 0..<mutated.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: mutated[at] = UInt8.random(in: 0...255, using: &random)
                case 1: mutated.removeSubrange(at..<min(mutated.count, at + Int.random(in: 1...40, using: &random)))
                default: mutated.insert(contentsOf: bytes.dropFirst(at).prefix(30), at: at)
                }
                if mutated.isEmpty { break }
            }
            guard let read = try? SessionDescription(parsing: String(decoding: mutated, as: UTF8.self)) else {
                continue
            }
            accepted += 1
            let again = try SessionDescription(parsing: read.serialized())
            // The first round may normalize; from then on nothing changes.
            #expect(try SessionDescription(parsing: again.serialized()) == again)
        }
        #expect(accepted > 300)
    }
}

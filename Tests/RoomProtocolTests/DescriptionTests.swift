import RTP
import Testing

@testable import RoomProtocol

@Suite struct DescriptionTests {
    private let transport = TransportDescription(
        iceUfrag: "abcd", icePwd: "abcdefghijklmnopqrstuv",
        fingerprints: [Fingerprint(algorithm: "sha-256", digest: Array(repeating: 7, count: 32))], setup: .actpass)

    private func pool() -> [Receiver] {
        [
            Receiver(mid: "0", media: .audio, ssrc: SSRC(10), retransmissionSSRC: nil),
            Receiver(mid: "1", media: .video, ssrc: SSRC(11), retransmissionSSRC: SSRC(12)),
        ]
    }

    @Test func `a client reads the SSRC of each receiver from the offer`() throws {
        let offer = DownDescription.offer(
            sessionID: 1, revision: 1, receivers: pool(), transport: transport, cname: "server")
        let parsed = try SessionDescription(parsing: offer.serialized())
        #expect(try DownDescription.receivers(in: parsed) == pool())
    }

    @Test func `an offer of the most receivers, with eight addresses of the server, and its answer can be read`() throws
    {
        let receivers = (0..<UInt32(DownDescription.audioSlots + DownDescription.mostVideos)).map { index in
            let isAudio = index < UInt32(DownDescription.audioSlots)
            return Receiver(
                mid: "\(index)", media: isAudio ? .audio : .video, ssrc: SSRC(4_000_000_000 + index),
                retransmissionSSRC: isAudio ? nil : SSRC(4_100_000_000 + index))
        }
        var transport = transport
        transport.candidates = (1...8).map { "candidate:\($0) 1 UDP 2130706431 2001:db8::\($0):1 50000 typ host" }
        let offer = try SessionDescription(
            parsing: DownDescription.offer(
                sessionID: .max, revision: 1, receivers: receivers, transport: transport, cname: "server"
            ).serialized())
        #expect(try DownDescription.receivers(in: offer) == receivers)
        let answer = DownDescription.answer(to: offer, sessionID: .max, transport: transport)
        #expect(try SessionDescription(parsing: answer.serialized()).media.count == 64)
    }

    @Test func `an answer accepts all video codecs and their RTX on every video receiver`() throws {
        let offer = try SessionDescription(
            parsing: DownDescription.offer(
                sessionID: 1, revision: 1, receivers: pool(), transport: transport, cname: "server"
            ).serialized())
        let answer = try SessionDescription(
            parsing: DownDescription.answer(to: offer, sessionID: 2, transport: transport).serialized())
        let codecs = NegotiatedCodec.all(in: try #require(answer[mid: "1"]))
        #expect(codecs.map(\.codec) == [.vp8, .h264, .vp9])
        #expect(codecs.map(\.retransmissionPayloadType) == [97, 99, 101])
        #expect(answer[mid: "0"]?.direction == .recvonly)
    }

    @Test func `an H264 answer repeats the offered profile`() throws {
        var offer = UpDescription.offer(
            sessionID: 1, version: 1,
            senders: [Sender(mid: "0", codec: .h264, ssrc: SSRC(5), retransmissionSSRC: SSRC(6))],
            transport: transport, cname: "me")
        offer.media[0].formats[0].parameters = "packetization-mode=1;profile-level-id=42001f"
        let parsed = try SessionDescription(parsing: offer.serialized())
        let stream = try UpDescription.stream("0", of: parsed)
        let answer = UpDescription.answer(to: parsed, taking: [stream], sessionID: 2, transport: transport)
        #expect(answer.media[0].formats[0].parameter("profile-level-id") == "42001f")
        #expect(stream.ssrc == SSRC(5))
        #expect(stream.retransmissionSSRC == SSRC(6))
    }

    @Test func `rooms carry H264 up to level 5_2, and receivers may decode higher ones`() throws {
        for (level, isTaken, isCarried) in [
            ("1f", true, true), ("34", true, true), ("3c", true, false), ("zz", false, false), ("", true, false),
        ] {
            var offer = UpDescription.offer(
                sessionID: 1, version: 1,
                senders: [Sender(mid: "0", codec: .h264, ssrc: SSRC(5), retransmissionSSRC: nil)],
                transport: transport, cname: "me")
            #expect(offer.media[0].formats[0].parameter("profile-level-id") == "42e034")
            offer.media[0].formats[0].parameters = "packetization-mode=1;profile-level-id=42e0\(level)"
            #expect((Codec(offer.media[0].formats[0]) == .h264) == isTaken, "\(level)")
            let stream = try? UpDescription.stream("0", of: try SessionDescription(parsing: offer.serialized()))
            #expect((stream != nil) == isCarried, "\(level)")
        }
    }

    private func vp9Offer(_ parameters: String) throws -> SessionDescription {
        var offer = UpDescription.offer(
            sessionID: 1, version: 1,
            senders: [Sender(mid: "0", codec: .vp9, ssrc: SSRC(5), retransmissionSSRC: SSRC(6))],
            transport: transport, cname: "me")
        #expect(offer.media[0].formats[0].parameters == "profile-id=0")
        offer.media[0].formats[0].parameters = parameters
        return try SessionDescription(parsing: offer.serialized())
    }

    @Test func `rooms carry VP9 of profile 0, which is that of an offer without one`() throws {
        for (parameters, isCarried) in [("profile-id=0", true), ("", true), ("profile-id=2", false)] {
            let offer = try vp9Offer(parameters)
            #expect((Codec(offer.media[0].formats[0]) == .vp9) == isCarried, "\(parameters)")
            guard isCarried else { continue }
            let stream = try UpDescription.stream("0", of: offer)
            let answer = UpDescription.answer(to: offer, taking: [stream], sessionID: 2, transport: transport)
            #expect(answer.media[0].formats.map(\.encoding) == ["VP9", "rtx"])
            #expect(answer.media[0].formats[0].parameters == "profile-id=0")
        }
    }

    @Test func `a stream of VP9 has up to three spatial layers, and one of another codec has none`() throws {
        var stream = try UpDescription.stream("0", of: vp9Offer("profile-id=0"))
        #expect(stream.spatialLayers == 1)
        try stream.setSpatialLayers(3)
        #expect(stream.spatialLayers == 3)
        for count in [0, 4, -1, Int.max] {
            #expect(throws: RoomError.self) { try stream.setSpatialLayers(count) }
        }
        stream.layers = ["q", "h"]
        try stream.setSpatialLayers(2)
        #expect(stream.spatialLayers == 1, "each layer of simulcast has one")
        stream.layers = []
        stream.negotiated.codec = .vp8
        try stream.setSpatialLayers(2)
        #expect(stream.spatialLayers == 1)
    }

    @Test func `capture times are negotiated under the id of the offer, and only if the answer accepts them`() throws {
        var offer = UpDescription.offer(
            sessionID: 1, version: 1,
            senders: [Sender(mid: "0", codec: .vp8, ssrc: SSRC(5), retransmissionSSRC: nil)],
            transport: transport, cname: "me")
        let ours = HeaderExtensionIDs(offer.media[0].extensions)
        #expect(ours.captureTime != nil)
        func answer() throws -> MediaDescription {
            let parsed = try SessionDescription(parsing: offer.serialized())
            let stream = try UpDescription.stream("0", of: parsed)
            let answer = UpDescription.answer(to: parsed, taking: [stream], sessionID: 2, transport: transport)
            #expect(stream.extensions == HeaderExtensionIDs(answer.media[0].extensions))
            return try SessionDescription(parsing: answer.serialized()).media[0]
        }
        #expect(UpDescription.acceptedExtensions(of: try answer()) == ours)
        // A browser has ids of its own.
        offer.media[0].extensions = [HeaderExtension(id: 11, .captureTime), HeaderExtension(id: 12, uri: "urn:x")]
        #expect(try answer().extensions == [HeaderExtension(id: 11, .captureTime)])
        offer.media[0].extensions = []
        #expect(try answer().extensions.isEmpty)
    }

    @Test func `levels are negotiated for published audio alone, and an answer without them gets none`() throws {
        let senders = [
            Sender(mid: "0", codec: .opus, ssrc: SSRC(5), retransmissionSSRC: nil),
            Sender(mid: "1", codec: .vp8, ssrc: SSRC(6), retransmissionSSRC: SSRC(7)),
        ]
        let offer = try SessionDescription(
            parsing: UpDescription.offer(
                sessionID: 1, version: 1, senders: senders, transport: transport, cname: "me"
            ).serialized())
        let streams = try ["0", "1"].map { try UpDescription.stream($0, of: offer) }
        #expect(streams.map(\.extensions.audioLevel) == [6, nil])
        var answer = UpDescription.answer(to: offer, taking: streams, sessionID: 2, transport: transport)
        answer = try SessionDescription(parsing: answer.serialized())
        #expect(answer.media.map { UpDescription.acceptedExtensions(of: $0).audioLevel } == [6, nil])
        // An earlier server.
        answer.media[0].extensions.removeAll { $0.kind == .audioLevel }
        #expect(UpDescription.acceptedExtensions(of: answer.media[0]).audioLevel == nil)
        let down = DownDescription.offer(
            sessionID: 1, revision: 1, receivers: pool(), transport: transport, cname: "server")
        #expect(down.media.allSatisfy { media in !media.extensions.contains { $0.kind == .audioLevel } })
    }

    @Test func `an offer of a browser is answered with levels under its own id, for audio`() throws {
        var offer = UpDescription.offer(
            sessionID: 1, version: 1,
            senders: [
                Sender(mid: "0", codec: .opus, ssrc: SSRC(5), retransmissionSSRC: nil),
                Sender(mid: "1", codec: .vp8, ssrc: SSRC(6), retransmissionSSRC: SSRC(7)),
            ], transport: transport, cname: "me")
        for place in offer.media.indices {
            offer.media[place].extensions = [
                HeaderExtension(id: 1, .audioLevel),
                HeaderExtension(id: 2, uri: "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"),
                HeaderExtension(id: 4, .mid),
            ]
        }
        let text = offer.serialized().replacing("ssrc-audio-level", with: "ssrc-audio-level vad=on")
        let parsed = try SessionDescription(parsing: text)
        let streams = try ["0", "1"].map { try UpDescription.stream($0, of: parsed) }
        #expect(streams.map(\.extensions.audioLevel) == [1, nil])
        let answer = UpDescription.answer(to: parsed, taking: streams, sessionID: 2, transport: transport)
        #expect(answer.media[0].extensions.map(\.id) == [1, 4] && answer.media[1].extensions.map(\.id) == [4])
        #expect(UpDescription.acceptedExtensions(of: answer.media[0]).audioLevel == nil, "our own id is another one")
    }

    @Test func `transport-wide numbers are negotiated with the feedback about them, and not without`() throws {
        var offer = UpDescription.offer(
            sessionID: 1, version: 1,
            senders: [Sender(mid: "0", codec: .vp8, ssrc: SSRC(5), retransmissionSSRC: SSRC(6))],
            transport: transport, cname: "me")
        func answer() throws -> MediaDescription {
            let parsed = try SessionDescription(parsing: offer.serialized())
            let stream = try UpDescription.stream("0", of: parsed)
            let answer = UpDescription.answer(to: parsed, taking: [stream], sessionID: 2, transport: transport)
            return try SessionDescription(parsing: answer.serialized()).media[0]
        }
        #expect(offer.media[0].formats.map { $0.feedback.contains("transport-cc") } == [true, false])
        #expect(UpDescription.acceptedExtensions(of: try answer()).transportNumber == 2)
        #expect(try answer().formats.map { $0.feedback.contains("transport-cc") } == [true, false])
        // A browser has ids of its own.
        offer.media[0].extensions = [HeaderExtension(id: 3, .transportNumber)]
        #expect(try answer().extensions == [HeaderExtension(id: 3, .transportNumber)])
        #expect(try UpDescription.stream("0", of: offer).extensions.transportNumber == 3)
        offer.media[0].formats[0].feedback = ["nack"]
        #expect(try answer().extensions.isEmpty)
        #expect(try !answer().formats[0].feedback.contains("transport-cc"))
        #expect(try UpDescription.stream("0", of: offer).extensions.transportNumber == nil)
        // A server that does not report arrivals.
        var silent = try answer()
        silent.extensions = [HeaderExtension(id: 2, .transportNumber)]
        #expect(UpDescription.acceptedExtensions(of: silent).transportNumber == nil)
    }

    @Test func `a server sends transport-wide numbers if the client reports about them`() throws {
        let offer = DownDescription.offer(
            sessionID: 1, revision: 1, receivers: pool(), transport: transport, cname: "server")
        for media in offer.media {
            #expect(media.extensions.contains { $0.kind == .transportNumber })
            #expect(media.formats.contains { $0.feedback.contains("transport-cc") })
            #expect(media.formats.contains { $0.feedback.contains("goog-remb") })
        }
        var answer = DownDescription.answer(to: offer, sessionID: 2, transport: transport)
        for media in answer.media { #expect(DownDescription.acceptedExtensions(of: media).transportNumber == 2) }
        for index in answer.media[0].formats.indices { answer.media[0].formats[index].feedback = [] }
        #expect(DownDescription.acceptedExtensions(of: answer.media[0]).transportNumber == nil)
    }

    @Test
    func `a peer without reports on transport-wide numbers gets estimates, or makes them by the times of sending`()
        throws
    {
        var offer = UpDescription.offer(
            sessionID: 1, version: 1,
            senders: [Sender(mid: "0", codec: .vp8, ssrc: SSRC(5), retransmissionSSRC: nil)],
            transport: transport, cname: "me")
        offer.media[0].extensions = [HeaderExtension(id: 2, .sendTime), HeaderExtension(id: 3, .transportNumber)]
        func answer() throws -> MediaDescription {
            let stream = try UpDescription.stream("0", of: offer)
            return UpDescription.answer(to: offer, taking: [stream], sessionID: 2, transport: transport).media[0]
        }
        #expect(try answer().extensions.map(\.id) == [3])
        #expect(try !UpDescription.stream("0", of: offer).takesEstimates)
        offer.media[0].formats[0].feedback = ["goog-remb"]
        #expect(try answer().extensions.map(\.id) == [2])
        #expect(try answer().formats[0].feedback.contains("goog-remb"))
        #expect(try UpDescription.stream("0", of: offer).takesEstimates)
        #expect(try UpDescription.stream("0", of: offer).extensions.sendTime == 2)

        let down = DownDescription.offer(
            sessionID: 1, revision: 1, receivers: pool(), transport: transport, cname: "server")
        var media = down.media[0]
        #expect(DownDescription.acceptedExtensions(of: media).sendTime == nil)
        for index in media.formats.indices { media.formats[index].feedback = ["goog-remb"] }
        #expect(DownDescription.acceptedExtensions(of: media) == HeaderExtensionIDs(captureTime: 1, sendTime: 3))
        for index in media.formats.indices { media.formats[index].feedback = [] }
        #expect(DownDescription.acceptedExtensions(of: media) == HeaderExtensionIDs(captureTime: 1))
    }

    @Test func `an extension counts only for the end that sends it`() throws {
        var offer = UpDescription.offer(
            sessionID: 1, version: 1,
            senders: [Sender(mid: "0", codec: .vp8, ssrc: SSRC(5), retransmissionSSRC: nil)],
            transport: transport, cname: "me")
        for (direction, isSent) in [(MediaDirection.sendonly, true), (.recvonly, false), (.inactive, false)] {
            offer.media[0].extensions = [HeaderExtension(id: 1, .captureTime, direction)]
            let parsed = try SessionDescription(parsing: offer.serialized())
            let stream = try UpDescription.stream("0", of: parsed)
            #expect((stream.extensions.captureTime == 1) == isSent)
            let answer = UpDescription.answer(to: parsed, taking: [stream], sessionID: 2, transport: transport)
            #expect(UpDescription.acceptedExtensions(of: answer.media[0]) == stream.extensions)
        }
    }

    @Test func `a client accepts the capture times of the server's offer, and another client may refuse them`() throws {
        let offer = DownDescription.offer(
            sessionID: 1, revision: 1, receivers: pool(), transport: transport, cname: "server")
        var answer = DownDescription.answer(to: offer, sessionID: 2, transport: transport)
        var accepted = HeaderExtensionIDs(offer.media[0].extensions)
        accepted.sendTime = nil
        for media in answer.media { #expect(DownDescription.acceptedExtensions(of: media) == accepted) }
        answer.media[1].extensions = []
        #expect(DownDescription.acceptedExtensions(of: answer.media[1]) == HeaderExtensionIDs())
        // Nothing else than the offer has may be accepted.
        answer.media[1].extensions = [HeaderExtension(id: 13, .captureTime), HeaderExtension(id: 4, .mid)]
        #expect(DownDescription.acceptedExtensions(of: answer.media[1]) == HeaderExtensionIDs())
    }

    private func publishing(_ mids: [String]) throws -> SessionDescription {
        let offer = UpDescription.offer(
            sessionID: 1, version: 1,
            senders: mids.map { Sender(mid: $0, codec: .vp8, ssrc: SSRC(5), retransmissionSSRC: nil) },
            transport: transport, cname: "me")
        return try SessionDescription(parsing: offer.serialized())
    }

    @Test(arguments: [
        (MediaDirection.inactive, MediaDirection.inactive), (.recvonly, .inactive), (.sendrecv, .recvonly),
    ])
    func `a published m-line that is offered again is answered by its direction`(
        offered: MediaDirection, answered: MediaDirection
    ) throws {
        var offer = try publishing(["0"])
        let stream = try UpDescription.stream("0", of: offer)
        offer.media[0].direction = offered
        let answer = UpDescription.answer(to: offer, taking: [stream], sessionID: 2, transport: transport)
        #expect(answer.media[0].direction == answered)
        #expect(!answer.media[0].isRejected)
    }

    @Test(arguments: [
        (MediaDirection.inactive, MediaDirection?.some(.inactive)), (.recvonly, .inactive), (.sendonly, nil),
    ])
    func `an m-line without a stream is kept for a later one, and refused if it sends`(
        offered: MediaDirection, answered: MediaDirection?
    ) throws {
        var offer = try publishing(["0", "1"])
        let stream = try UpDescription.stream("1", of: offer)
        offer.media[0].direction = offered
        let answer = UpDescription.answer(to: offer, taking: [stream], sessionID: 2, transport: transport)
        #expect(answer.media[0].isRejected == (answered == nil))
        #expect(answered == nil || answer.media[0].direction == answered)
        #expect(answer.media[1].direction == .recvonly)
    }

    @Test func `an ended stream's m-line is offered as stopped and does not bundle`() throws {
        var senders = ["0", "1"].map { Sender(mid: $0, codec: .vp8, ssrc: SSRC(5), retransmissionSSRC: nil) }
        senders[0].hasEnded = true
        let offer = try SessionDescription(
            parsing: UpDescription.offer(
                sessionID: 1, version: 1, senders: senders, transport: transport, cname: "me"
            ).serialized())
        #expect(offer.media.map(\.isRejected) == [true, false])
        #expect(offer.bundle == ["1"])
        #expect(offer.media[0].ssrcs == [])
        let stream = try UpDescription.stream("1", of: offer)
        let answer = UpDescription.answer(to: offer, taking: [stream], sessionID: 2, transport: transport)
        #expect(answer.media.map(\.isRejected) == [true, false])
    }

    @Test func `a stopped published m-line is answered as stopped`() throws {
        var offer = try publishing(["0"])
        let stream = try UpDescription.stream("0", of: offer)
        offer.media[0].isRejected = true
        let answer = UpDescription.answer(to: offer, taking: [stream], sessionID: 2, transport: transport)
        #expect(answer.media[0].isRejected)
    }

    @Test func `an answer bundles only if the offer does`() throws {
        var offer = try publishing(["0"])
        let stream = try UpDescription.stream("0", of: offer)
        func answer() -> String {
            UpDescription.answer(to: offer, taking: [stream], sessionID: 2, transport: transport).serialized()
        }
        #expect(answer().contains("a=group:BUNDLE 0\r\n"))
        offer.bundle = nil
        #expect(!answer().contains("a=group"))
    }

    @Test func `an m-line without a supported codec is refused with the supported ones`() throws {
        var offer = UpDescription.offer(
            sessionID: 1, version: 1,
            senders: [Sender(mid: "0", codec: .vp8, ssrc: SSRC(5), retransmissionSSRC: nil)],
            transport: transport, cname: "me")
        offer.media[0].formats = [PayloadFormat(payloadType: 100, encoding: "AV1", clockRate: 90000)]
        let error = #expect(throws: RoomError.self) { try UpDescription.stream("0", of: offer) }
        #expect(error?.code == .publishRefused)
        #expect(error?.message.contains("AV1") == true)
        #expect(throws: RoomError.self) { try UpDescription.stream("9", of: offer) }
    }
}

@Suite("S10 encoding names from the network") struct EncodingNameTests {
    @Test func `only codecs that rooms carry are accepted from an offer`() {
        let hostile = [
            "X-GST", "THEORA", "VORBIS", "X-QT", "x-gst", "QDM2", "ASF", "VP8 ! filesink", "../VP8", "", "VP8\u{0}",
            "rtx", "red", "ulpfec", "L16", "JPEG", "H265", "AV1",
        ]
        for encoding in hostile {
            #expect(Codec(PayloadFormat(payloadType: 96, encoding: encoding, clockRate: 90000)) == nil, "\(encoding)")
        }
        let carried = ["vp8", "VP8", "opus", "OPUS"].compactMap {
            Codec(PayloadFormat(payloadType: 96, encoding: $0, clockRate: 90000))
        }
        #expect(carried == [.vp8, .vp8, .opus, .opus])
    }
}

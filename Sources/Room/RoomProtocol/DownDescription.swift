package import RTP

/// One receiver of a down session: an m-line that the server sends on.
package struct Receiver: Sendable, Equatable {
    package var mid: String
    package var media: StreamMedia
    package var ssrc: SSRC
    package var retransmissionSSRC: SSRC?

    package init(mid: String, media: StreamMedia, ssrc: SSRC, retransmissionSSRC: SSRC?) {
        self.mid = mid
        self.media = media
        self.ssrc = ssrc
        self.retransmissionSSRC = retransmissionSSRC
    }
}

/// The descriptions of a down session: the server offers its receivers, the client answers with the codecs it decodes.
package enum DownDescription {
    /// Audio slots of every down session.
    package static let audioSlots = 4
    /// The most video receivers of a down session: a description has no place for more.
    package static let mostVideos = SessionDescription.maximumMedia - audioSlots

    package static func offer(
        sessionID: UInt64, revision: Int, receivers: [Receiver], transport: TransportDescription, cname: String
    ) -> SessionDescription {
        SessionDescription(
            sessionID: sessionID, version: UInt64(revision),
            media: receivers.map { receiver in
                MediaDescription(
                    kind: receiver.media == .audio ? .audio : .video, mid: receiver.mid, direction: .sendonly,
                    formats: Codec.formats(Codec.of(receiver.media)).map(\.reported), extensions: offeredExtensions,
                    ssrcs: [receiver.ssrc],
                    retransmissionSSRC: receiver.retransmissionSSRC, cname: cname,
                    // One media stream for each receiver. Which audio and video belong together changes with the
                    // assignments, so the description must not tie them.
                    msid: "receiver-\(receiver.mid) track-\(receiver.mid)", transport: transport)
            })
    }

    /// The receivers of a server's offer.
    package static func receivers(in offer: SessionDescription) throws(RoomError) -> [Receiver] {
        var receivers: [Receiver] = []
        for media in offer.media where media.kind != .application && !media.isRejected {
            guard let ssrc = media.ssrcs.first else {
                throw RoomError(.downOfferUnusable, "The server's offer has no SSRC for the receiver '\(media.mid)'.")
            }
            receivers.append(
                Receiver(
                    mid: media.mid, media: media.kind == .audio ? .audio : .video, ssrc: ssrc,
                    retransmissionSSRC: media.retransmissionSSRC))
        }
        return receivers
    }

    /// An answer that accepts every receiver with every codec that we know.
    package static func answer(
        to offer: SessionDescription, sessionID: UInt64, transport: TransportDescription
    ) -> SessionDescription {
        SessionDescription(
            sessionID: sessionID, version: offer.version,
            media: offer.media.map { media in
                guard media.kind != .application, !NegotiatedCodec.all(in: media).isEmpty else {
                    return media.rejected(transport)
                }
                return MediaDescription(
                    kind: media.kind, mid: media.mid, direction: .recvonly,
                    formats: media.formats.filter { format in
                        Codec(format) != nil
                            || media.formats.contains { Codec($0) == .opus && format.carriesCopies(of: $0) }
                            || format.retransmits.flatMap { media.format(payloadType: $0) }.flatMap(Codec.init) != nil
                    },
                    extensions: media.acceptableExtensions, transport: transport)
            })
    }
}

extension DownDescription {
    /// The header extensions of our offers. An id means the same in each m-line of a bundle (RFC 8843, section 9.1).
    static let offeredExtensions = [
        HeaderExtension(id: 1, .captureTime), HeaderExtension(id: 2, .transportNumber),
        HeaderExtension(id: 3, .sendTime),
    ]

    /// The header extensions of our offer that an m-line of its answer accepts.
    package static func acceptedExtensions(of media: MediaDescription) -> HeaderExtensionIDs {
        media.accepted(of: offeredExtensions)
    }
}

extension MediaDescription {
    /// The header extensions of an offer that this m-line of its answer accepts. Transport-wide numbers are of use only with
    /// reports about them.
    func accepted(of offered: [HeaderExtension]) -> HeaderExtensionIDs {
        var ids = HeaderExtensionIDs(
            extensions.received.filter { one in offered.contains { $0.id == one.id && $0.uri == one.uri } })
        if !reportsTransportNumbers { ids.transportNumber = nil }
        if !needsEstimates { ids.sendTime = nil }
        return ids
    }

    /// The header extensions of this offered m-line that an answer accepts.
    var acceptableExtensions: [HeaderExtension] {
        extensions.acceptable.filter { one in
            switch one.kind {
            case .transportNumber: reportsTransportNumbers
            case .sendTime: needsEstimates
            case .streamID, .repairedStreamID: simulcast != nil
            case .audioLevel: kind == .audio
            default: true
            }
        }
    }

    /// The ids of the header extensions that the end with this description sends.
    package var sentExtensions: HeaderExtensionIDs {
        var ids = HeaderExtensionIDs(extensions.sent)
        if !reportsTransportNumbers { ids.transportNumber = nil }
        if !needsEstimates { ids.sendTime = nil }
        if simulcast == nil { (ids.streamID, ids.repairedStreamID) = (nil, nil) }
        if kind != .audio { ids.audioLevel = nil }
        return ids
    }

    /// Whether a format of it has the feedback about transport-wide numbers.
    var reportsTransportNumbers: Bool { formats.contains { $0.feedback.contains(TransportSequence.feedback) } }

    /// Whether a format of it has the feedback with estimates (REMB), and none has that about transport-wide numbers.
    var needsEstimates: Bool {
        !reportsTransportNumbers && formats.contains { $0.feedback.contains(ReceiverEstimate.feedback) }
    }

    /// The feedback about the path that the answer to this offered m-line accepts.
    var acceptableFeedback: String? {
        reportsTransportNumbers ? TransportSequence.feedback : needsEstimates ? ReceiverEstimate.feedback : nil
    }

    /// This m-line, refused in an answer.
    func rejected(_ transport: TransportDescription) -> MediaDescription {
        MediaDescription(
            kind: kind, mid: mid, direction: .inactive, formats: formats, transport: transport, isRejected: true,
            applicationLine: applicationLine)
    }
}

extension PayloadFormat {
    /// With the feedback about transport-wide numbers, which covers its RTX, and with REMB for peers without that.
    var reported: PayloadFormat {
        var format = self
        let isRedundancy = encoding.lowercased() == Self.redundancy
        guard retransmits == nil, !isRedundancy else { return format }
        format.feedback += [TransportSequence.feedback, ReceiverEstimate.feedback]
        return format
    }
}

package import RTP

/// One stream that a client sends in its up session.
package struct Sender: Sendable, Equatable {
    package var mid: String
    package var codec: Codec
    package var ssrc: SSRC
    package var retransmissionSSRC: SSRC?
    /// The layers of a video that comes in several, lowest first (RFC 8851). Empty for one encoding. Packets name them, so that
    /// the offer needs no SSRCs: a server that does not know layers then takes the stream of the m-line's mid.
    package var layers: [String] = []
    /// Whether the stream has ended, so that its m-line is free for another one with another mid (RFC 8829, section
    /// 5.2.2).
    package var hasEnded = false

    package init(mid: String, codec: Codec, ssrc: SSRC, retransmissionSSRC: SSRC?) {
        self.mid = mid
        self.codec = codec
        self.ssrc = ssrc
        self.retransmissionSSRC = retransmissionSSRC
    }
}

/// A stream of a client's offer that the server accepts.
package struct OfferedStream: Sendable, Equatable {
    package var mid: String
    package var negotiated: NegotiatedCodec
    package var ssrc: SSRC?
    package var retransmissionSSRC: SSRC?
    /// The rids of its layers, lowest quality first. Empty without simulcast.
    package var layers: [String] = []
    /// How many spatial layers its packets carry, as the publisher states (RFC 9628). 1 for most.
    package var spatialLayers = 1
    /// The header extensions that the answer accepts. The MID identifies the stream if the offer has no SSRC, and the rids its
    /// layers.
    package var extensions: HeaderExtensionIDs
    /// Whether its sender follows estimates of the server (REMB), and has no reports about transport-wide numbers.
    package var takesEstimates = false
}

extension OfferedStream {
    /// Sets the number of spatial layers that the publisher states. Other codecs than VP9 have none, and neither has each layer
    /// of simulcast.
    ///
    /// - Throws: `1441` for a number out of range.
    package mutating func setSpatialLayers(_ count: Int) throws(RoomError) {
        guard (1...UpDescription.maximumLayers).contains(count) else {
            throw RoomError(
                .publishRefused,
                "The stream of '\(mid)' has \(count) spatial layers. Publish 1 to \(UpDescription.maximumLayers).")
        }
        spatialLayers = negotiated.codec == .vp9 && layers.isEmpty ? count : 1
    }
}

/// The descriptions of an up session: the client offers its streams, and the server accepts each with the first codec
/// that it carries.
package enum UpDescription {
    /// The header extensions of our offers. An id means the same in each m-line of a bundle (RFC 8843, section 9.1).
    static let offeredExtensions = [HeaderExtension(id: 1, .captureTime), HeaderExtension(id: 2, .transportNumber)]
    /// Those of a video that comes in layers.
    static let layeredExtensions =
        offeredExtensions + [
            HeaderExtension(id: 3, .mid), HeaderExtension(id: 4, .streamID), HeaderExtension(id: 5, .repairedStreamID),
        ]
    /// Those of audio.
    static let audioExtensions = offeredExtensions + [HeaderExtension(id: 6, .audioLevel)]

    private static func extensions(of sender: Sender) -> [HeaderExtension] {
        if sender.codec.media == .audio { return audioExtensions }
        return sender.layers.isEmpty ? offeredExtensions : layeredExtensions
    }

    package static func offer(
        sessionID: UInt64, version: UInt64, senders: [Sender], transport: TransportDescription, cname: String
    ) -> SessionDescription {
        SessionDescription(
            sessionID: sessionID, version: version,
            media: senders.map { sender in
                guard !sender.hasEnded else {
                    return MediaDescription(
                        kind: sender.codec.media == .audio ? .audio : .video, mid: sender.mid, direction: .inactive,
                        formats: Codec.formats([sender.codec]), transport: transport, isRejected: true)
                }
                let isLayered = !sender.layers.isEmpty
                var media = MediaDescription(
                    kind: sender.codec.media == .audio ? .audio : .video, mid: sender.mid, direction: .sendonly,
                    formats: Codec.formats([sender.codec]).map(\.reported),
                    extensions: extensions(of: sender),
                    ssrcs: isLayered ? [] : [sender.ssrc],
                    retransmissionSSRC: isLayered ? nil : sender.retransmissionSSRC, cname: cname,
                    msid: "\(cname) \(sender.mid)", transport: transport)
                if isLayered { media.simulcast = Simulcast(isSending: true, rids: sender.layers) }
                return media
            })
    }

    /// The layers of our offer that an m-line of its answer accepts, without paused ones. Empty if it accepts one encoding only.
    package static func acceptedLayers(of media: MediaDescription) -> [String] {
        guard let simulcast = media.simulcast, !simulcast.isSending else { return [] }
        return simulcast.rids.filter { !simulcast.paused.contains($0) }
    }

    /// The header extensions of our offer that an m-line of its answer accepts.
    package static func acceptedExtensions(of media: MediaDescription) -> HeaderExtensionIDs {
        media.accepted(of: media.kind == .audio ? audioExtensions : layeredExtensions)
    }

    /// The payload types of RED that an m-line of the answer to our offer accepts, by those of codecs.
    package static func acceptedRedundancy(of media: MediaDescription) -> [UInt8: UInt8] {
        NegotiatedCodec.all(in: media).reduce(into: [:]) { types, codec in
            types.merge(codec.redundancyPayloadTypes) { first, _ in first }
        }
    }

    /// The stream of an offer's m-line. Throws if the server cannot accept it.
    package static func stream(_ mid: String, of offer: SessionDescription) throws(RoomError) -> OfferedStream {
        guard let media = offer[mid: mid], media.kind != .application, !media.isRejected else {
            throw RoomError(.publishRefused, "The offer has no audio or video m-line with the mid '\(mid.prefix(32))'.")
        }
        guard media.direction == .sendonly || media.direction == .sendrecv else {
            throw RoomError(.publishRefused, "The m-line '\(mid)' does not send. Offer it as 'sendonly'.")
        }
        guard let negotiated = NegotiatedCodec.all(in: media).first(where: { !$0.exceedsLevel }) else {
            let offered = media.formats.map(\.encoding).filter {
                !["", "rtx", PayloadFormat.redundancy].contains($0.lowercased())
            }
            throw RoomError(
                .publishRefused,
                "The m-line '\(mid)' offers \(offered.isEmpty ? "no codec" : offered.joined(separator: ", ")). Offer "
                    + (media.kind == .audio
                        ? "opus."
                        : "VP8, VP9 of profile 0, or H264 of the baseline profile up to level 5.2 with packetization mode 1.")
            )
        }
        let layers = try layers(of: media)
        // The SSRCs of layers are those of their rids.
        var stream = OfferedStream(
            mid: mid, negotiated: negotiated, ssrc: layers.isEmpty ? media.ssrcs.first : nil,
            retransmissionSSRC: layers.isEmpty ? media.retransmissionSSRC : nil, layers: layers,
            extensions: media.sentExtensions)
        stream.takesEstimates = media.needsEstimates
        return stream
    }

    /// The most layers of a stream.
    package static let maximumLayers = 3

    private static func layers(of media: MediaDescription) throws(RoomError) -> [String] {
        guard let simulcast = media.simulcast, simulcast.isSending else { return [] }
        let count = simulcast.rids.count
        guard count <= maximumLayers, media.kind == .video else {
            throw RoomError(
                .publishRefused,
                "The m-line '\(media.mid)' offers simulcast of \(count) layers. Offer video with at most \(maximumLayers)."
            )
        }
        let ids = media.sentExtensions
        guard ids.mid != nil, ids.streamID != nil else {
            throw RoomError(
                .publishRefused,
                "The m-line '\(media.mid)' offers simulcast without the header extensions that name the layer of a packet. "
                    + "Add 'a=extmap' lines for \(HeaderExtension.Kind.mid.rawValue) and "
                    + "\(HeaderExtension.Kind.streamID.rawValue).")
        }
        return simulcast.rids
    }

    /// An answer that accepts the given streams. Of the other m-lines, it keeps those that do not send for a later stream,
    /// and refuses the rest. It bundles as the offer does.
    package static func answer(
        to offer: SessionDescription, taking streams: [OfferedStream], sessionID: UInt64,
        transport: TransportDescription
    ) -> SessionDescription {
        var answer = SessionDescription(
            sessionID: sessionID, version: offer.version,
            media: offer.media.map { media in
                // An m-line that does not send is answered as 'inactive' (RFC 8829, section 5.3.1).
                let sends = media.direction == .sendonly || media.direction == .sendrecv
                let stream = streams.first { $0.mid == media.mid }
                guard !media.isRejected,
                    let negotiated = stream?.negotiated ?? (sends ? nil : NegotiatedCodec.all(in: media).first)
                else {
                    return media.rejected(transport)
                }
                var answered = MediaDescription(
                    kind: media.kind, mid: media.mid, direction: sends ? .recvonly : .inactive,
                    formats: formats(of: negotiated, feedback: media.acceptableFeedback),
                    extensions: media.acceptableExtensions, transport: transport)
                // A browser that finds its layers refused keeps one of them, also for a stream that follows on the m-line.
                let layers = stream.map(\.layers) ?? (try? self.layers(of: media)) ?? []
                if !layers.isEmpty { answered.simulcast = Simulcast(isSending: false, rids: layers) }
                return answered
            })
        if offer.bundle == nil { answer.bundle = [] }
        return answer
    }

    private static func formats(of negotiated: NegotiatedCodec, feedback: String?) -> [PayloadFormat] {
        var format = negotiated.codec.format
        if let feedback { format.feedback.append(feedback) }
        format.payloadType = negotiated.payloadType
        if negotiated.codec == .h264 { format.parameters = negotiated.parameters }
        if negotiated.requestsDTX { format.parameters += ";\(NegotiatedCodec.dtxParameter)=1" }
        var formats = [format]
        if let retransmission = negotiated.retransmissionPayloadType {
            formats.append(.retransmission(of: negotiated.payloadType, as: retransmission))
        }
        // Behind the codec, so that browsers send RED only when the page tells them to.
        if let redundancy = negotiated.redundancyPayloadType {
            formats.append(negotiated.codec.redundancy(of: negotiated.payloadType, as: redundancy))
        }
        return formats
    }
}

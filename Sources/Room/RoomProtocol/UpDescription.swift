package import RTP

/// One stream that a client sends in its up session.
package struct Sender: Sendable, Equatable {
    package var mid: String
    package var codec: Codec
    package var ssrc: SSRC
    package var retransmissionSSRC: SSRC?

    package init(mid: String, codec: Codec, ssrc: SSRC, retransmissionSSRC: SSRC?) {
        self.mid = mid
        self.codec = codec
        self.ssrc = ssrc
        self.retransmissionSSRC = retransmissionSSRC
    }
}

/// A stream that the server agreed to receive, read from a client's offer.
package struct OfferedStream: Sendable, Equatable {
    package var mid: String
    package var negotiated: NegotiatedCodec
    package var ssrc: SSRC?
    package var retransmissionSSRC: SSRC?
    /// The id of the MID header extension, which tells the stream when the offer names no SSRC.
    package var midExtensionID: UInt8?
}

/// The descriptions of an up session: the client offers its streams, the server takes each with the first codec that
/// it carries.
package enum UpDescription {
    package static func offer(
        sessionID: UInt64, version: UInt64, senders: [Sender], transport: TransportDescription, cname: String
    ) -> SessionDescription {
        SessionDescription(
            sessionID: sessionID, version: version,
            media: senders.map { sender in
                MediaDescription(
                    kind: sender.codec.media == .audio ? .audio : .video, mid: sender.mid, direction: .sendonly,
                    formats: Codec.formats([sender.codec]), ssrcs: [sender.ssrc],
                    retransmissionSSRC: sender.retransmissionSSRC, cname: cname, msid: "\(cname) \(sender.mid)",
                    transport: transport)
            })
    }

    /// The stream that an m-line of an offer would send, or why the server cannot take it.
    package static func stream(_ mid: String, of offer: SessionDescription) throws(RoomError) -> OfferedStream {
        guard let media = offer[mid: mid], media.kind != .application, !media.isRejected else {
            throw RoomError(.publishRefused, "The offer has no audio or video with the mid '\(mid.prefix(32))'.")
        }
        guard media.direction == .sendonly || media.direction == .sendrecv else {
            throw RoomError(.publishRefused, "The m-line '\(mid)' does not send: offer it 'sendonly'.")
        }
        guard let negotiated = NegotiatedCodec.all(in: media).first else {
            let offered = media.formats.map(\.encoding).filter { !$0.isEmpty && $0.lowercased() != "rtx" }
            throw RoomError(
                .publishRefused,
                "The m-line '\(mid)' offers \(offered.isEmpty ? "no codec" : offered.joined(separator: ", ")); "
                    + (media.kind == .audio ? "opus" : "VP8, or H264 with packetization mode 1,") + " is needed.")
        }
        return OfferedStream(
            mid: mid, negotiated: negotiated, ssrc: media.ssrcs.first, retransmissionSSRC: media.retransmissionSSRC,
            midExtensionID: media.extensionID(uri: HeaderExtension.midURI))
    }

    /// An answer that takes the given streams and refuses the other m-lines. It bundles as far as the offer did.
    package static func answer(
        to offer: SessionDescription, taking streams: [OfferedStream], sessionID: UInt64,
        transport: TransportDescription
    ) -> SessionDescription {
        var answer = SessionDescription(
            sessionID: sessionID, version: offer.version,
            media: offer.media.map { media in
                guard !media.isRejected, let stream = streams.first(where: { $0.mid == media.mid }) else {
                    return media.rejected(transport)
                }
                // What does not send is answered 'inactive' (RFC 8829 section 5.3.1).
                let sends = media.direction == .sendonly || media.direction == .sendrecv
                return MediaDescription(
                    kind: media.kind, mid: media.mid, direction: sends ? .recvonly : .inactive,
                    formats: formats(of: stream.negotiated),
                    extensions: media.extensions.filter { $0.uri == HeaderExtension.midURI },
                    transport: transport)
            })
        if offer.bundle == nil { answer.bundle = [] }
        return answer
    }

    private static func formats(of negotiated: NegotiatedCodec) -> [PayloadFormat] {
        var format = negotiated.codec.format
        format.payloadType = negotiated.payloadType
        if negotiated.codec == .h264 { format.parameters = negotiated.parameters }
        guard let retransmission = negotiated.retransmissionPayloadType else { return [format] }
        return [format, .retransmission(of: negotiated.payloadType, as: retransmission)]
    }
}

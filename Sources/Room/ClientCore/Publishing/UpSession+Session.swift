internal import MediaGraph
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

extension UpSession {
    /// The session and its RTP streams.
    ///
    /// - Parameters:
    ///   - index: how many up sessions there were before
    ///   - participant: this one
    ///   - time: now, in seconds since 1970
    func statistics(
        index: Int, participant: String, time: Double, wallClock: (MonotonicTime) -> NTPTime
    ) -> SessionStatistics {
        var statistics = SessionStatistics(.up, index: index, of: peer, profile: profile, time: time)
        for track in tracks {
            guard let stream = track.stream else { continue }
            let layers = layers(of: track)
            for (rank, encoding) in track.encodings.enumerated() {
                guard let counters = peer.statistics(of: encoding.sender) else { continue }
                var sent = SessionStatistics.Sent(
                    stream: stream, participant: participant, mid: track.sender.mid,
                    rid: encoding.configuration.rid, ssrc: encoding.configuration.ssrc,
                    repairSSRC: encoding.configuration.retransmissionSSRC, source: track.sender.ssrc, rank: rank,
                    layers: track.encodings.count, codec: SessionStatistics.CodecParameters(track.sender.codec),
                    isActive: encoding.isOn, counters: counters,
                    reportTime: counters.reportedAt.map { wallClock($0).unixSeconds }, framesSent: encoding.framesSent)
                describe(encoding, of: track, layers[rank], in: &sent)
                statistics.sent.append(sent)
            }
        }
        return statistics
    }

    private func describe(
        _ encoding: Encoding, of track: Track, _ layer: RoomStatistics.Published.Layer,
        in sent: inout SessionStatistics.Sent
    ) {
        let source = track.offer.track
        guard track.isVideo else {
            guard let counters = source.audioEncoderStatistics else { return }
            track.sound.update(counters)
            return sent.sound = track.sound.statistics(counters)
        }
        if layer.width > 0, layer.height > 0 { (sent.width, sent.height) = (layer.width, layer.height) }
        guard let counters = source.encoderStatistics(of: encoding.layer) else { return }
        encoding.encoder.update(counters)
        sent.encoder = encoding.encoder.statistics(counters, layer.limitation)
    }
}

extension SessionStatistics.CodecParameters {
    /// As in an offer of this end.
    init(_ codec: Codec) {
        self.init(codec: codec, payloadType: codec.payloadType, parameters: codec.format.parameters)
    }

    init(_ negotiated: NegotiatedCodec) {
        self.init(
            codec: negotiated.codec, payloadType: negotiated.payloadType, parameters: negotiated.parameters)
    }
}

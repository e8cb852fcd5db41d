internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

extension DownSession {
    /// The session and the receivers that have got packets.
    ///
    /// - Parameters:
    ///   - figures: those of `figures()`
    ///   - index: how many down sessions there were before
    ///   - time: now, in seconds since 1970
    func statistics(
        _ figures: [RoomStatistics.Received?], index: Int, time: Double, wallClock: (MonotonicTime) -> NTPTime
    ) -> SessionStatistics {
        var statistics = SessionStatistics(.down, index: index, of: peer, profile: profile, time: time)
        statistics.received = zip(slots, figures).compactMap { slot, stream in
            guard let counters = peer.statistics(of: slot.id), counters.arrivals.packets > 0 else { return nil }
            var received = SessionStatistics.Received(
                mid: slot.receiver.mid, media: slot.receiver.media, ssrc: slot.receiver.ssrc,
                repairSSRC: slot.receiver.retransmissionSSRC, stream: slot.assignment?.stream.id,
                participant: slot.assignment?.stream.participant,
                codec: slot.codec.map { SessionStatistics.CodecParameters($0) }, counters: counters,
                lastPacketTime: counters.arrivals.last.map { wallClock($0).unixSeconds },
                reportTime: counters.sent.map { wallClock($0.arrival).unixSeconds },
                remoteTime: counters.sent?.ntp.unixSeconds, totals: slot.past)
            if slot.receiver.media == .video { received.framesPerSecond = slot.frameRate.measured }
            guard let stream else { return received }
            received.totals.add(stream)
            if stream.width > 0, stream.height > 0 {
                (received.width, received.height) = (stream.width, stream.height)
            }
            received.audioLevel = stream.audioLevel
            return received
        }
        return statistics
    }
}

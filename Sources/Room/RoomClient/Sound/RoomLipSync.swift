internal import ClientCore
internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol

/// Plays each participant's sound and video together. On the loop only.
final class RoomLipSync {
    private struct Participant {
        var lipSync = LipSync()
        /// Capture times count from the first one, which may be of any year and wrap.
        let origin: NTPTime
    }

    /// The first capture time, in nanoseconds: more than the 68 years that one may be before it.
    private static let origin: Int64 = 1 << 61

    private var participants: [String: Participant] = [:]

    /// Notes what a stream plays. Returns how long to hold it, in seconds, or nil if its capture time is unknown.
    func note(_ media: PlayedMedia, of stream: IncomingStream, _ clock: StreamClock?, now: MonotonicTime) -> Double? {
        guard let (captured, source) = clock?.captureTime(of: RTPTimestamp(media.rtpTimestamp)) else { return nil }
        var participant = participants[stream.participant] ?? Participant(origin: captured)
        let elapsed = captured.interval(since: participant.origin).nanoseconds
        let playing = LipSync.Playing(
            captured: MediaTime(nanoseconds: UInt64(Self.origin + elapsed)), played: media.time, hold: media.hold,
            clock: source == .captureTime ? 0 : 1, frame: media.rtpTimestamp)
        let hold = participant.lipSync.note(
            stream.id, isSound: stream.codec.media == .audio, playing, now: MediaTime(nanoseconds: now.nanoseconds))
        participants[stream.participant] = participant
        return hold
    }

    func end(_ stream: IncomingStream) {
        participants[stream.participant]?.lipSync.remove(stream.id)
        if participants[stream.participant]?.lipSync.isEmpty ?? false { participants[stream.participant] = nil }
    }
}

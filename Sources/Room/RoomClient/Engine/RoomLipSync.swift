internal import ClientCore
internal import MediaGraph
internal import MediaNodes
internal import RTP
internal import RoomProtocol

/// Plays each participant's sound and video together. On the loop only.
final class RoomLipSync {
    private var participants: [String: LipSync] = [:]

    /// Notes what a stream plays. Returns how long to hold it, in seconds, or nil if its capture time is unknown.
    func note(_ media: PlayedMedia, of stream: IncomingStream, _ clock: StreamClock?, now: MonotonicTime) -> Double? {
        guard let (captured, source) = clock?.captureTime(of: RTPTimestamp(media.rtpTimestamp)) else { return nil }
        let playing = LipSync.Playing(
            captured: MediaTime(nanoseconds: captured.unixNanoseconds), played: media.time, hold: media.hold,
            clock: source == .captureTime ? 0 : 1)
        return participants[stream.participant, default: LipSync()].note(
            stream.id, isSound: stream.codec.media == .audio, playing, now: MediaTime(nanoseconds: now.nanoseconds))
    }

    func end(_ stream: IncomingStream) {
        participants[stream.participant]?.remove(stream.id)
        if participants[stream.participant]?.isEmpty ?? false { participants[stream.participant] = nil }
    }
}

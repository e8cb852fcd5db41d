import MediaGraph

/// The newest media that a pipeline received, and when it plays it.
package struct PlayedMedia: Sendable {
    package var rtpTimestamp: UInt32
    package var time: MediaTime
    /// The part of its delay that is for lip-sync, in seconds.
    package var hold: Double

    package init(rtpTimestamp: UInt32, time: MediaTime, hold: Double) {
        (self.rtpTimestamp, self.time, self.hold) = (rtpTimestamp, time, hold)
    }
}

extension MediaPipeline {
    /// The newest media of an RTP input. The time for decoding does not count. Nil before the first media, without such
    /// nodes, and while the loudspeaker does not play.
    ///
    /// - Parameter speaker: the loudspeaker that plays it. Nil for video, which is shown when its playout is due.
    package func playing(_ input: String, on speaker: String? = nil) -> PlayedMedia? {
        guard var media = find(RTPInputNode.self, input)?.playing else { return nil }
        guard let speaker else { return media }
        guard let played = find(KeptSpeaker.self, speaker)?.played else { return nil }
        media.time = media.time + .nanoseconds(Int64(played.delay * 1e9))
        media.hold = played.hold
        return media
    }

    /// Delays the media of an RTP input for video, or of a loudspeaker, for lip-sync. The delay changes slowly.
    package func hold(_ node: String, seconds: Double) {
        graph.node(node)?.running?.hold(seconds: seconds)
    }
}

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
    /// The newest media of an RTP input for video, and when its playout is due. The time for decoding does not count. Nil before
    /// the first media, and without such a node.
    package func playing(_ input: String) -> PlayedMedia? { find(RTPInputNode.self, input)?.playing }

    /// The newest media of an RTP input for audio, which a slot passes on, and when a loudspeaker plays it. Nil before the first
    /// media, without such nodes, and while the loudspeaker does not play.
    package func playing(_ input: String, through slot: String, on speaker: String) -> PlayedMedia? {
        guard var media = find(RTPInputNode.self, input)?.playing, let slot = find(SoundSlotNode.self, slot),
            let delay = find(KeptSpeaker.self, speaker)?.heardAfter
        else { return nil }
        let held = slot.held
        media.hold = held.lipSync
        media.time = media.time + .nanoseconds(Int64((delay + held.all) * 1e9))
        return media
    }

    /// Delays the media of an RTP input for video, or of a slot for audio, for lip-sync. The delay changes slowly.
    package func hold(_ node: String, seconds: Double) {
        graph.node(node)?.running?.hold(seconds: seconds)
    }

    /// Sets the volume of a mixer's input, counted from 1, also for audio that waits there. Does nothing without a mixer of that
    /// name.
    ///
    /// - Parameter factor: for samples, 0...10: 0 is silence, 1 is unchanged.
    package func setVolume(_ factor: Double, isMuted: Bool, ofInput input: Int, in mixer: String) {
        find(AudioMixerNode.self, mixer)?.setVolume(factor, isMuted: isMuted, of: input)
    }

    /// Plays no more of the audio that has reached a slot, or waits at the mixer's input behind it. The slot's next stream begins
    /// with the delay that it is to have. The audio that arrives from now on is of that one.
    ///
    /// - Parameter input: counted from 1.
    package func end(_ slot: String, atInput input: Int, of mixer: String) {
        guard let slot = find(SoundSlotNode.self, slot), slot.end() else { return }
        find(AudioMixerNode.self, mixer)?.skip(input)
    }

    /// Whether a loudspeaker has a device that plays, or would play.
    package func isAudible(_ speaker: String) -> Bool { find(KeptSpeaker.self, speaker)?.isAudible ?? false }

    /// The figures of some nodes alone.
    package func statistics(of nodes: [String]) -> MediaStatistics {
        var statistics = MediaStatistics()
        for name in nodes { graph.node(name)?.running?.report(into: &statistics, as: name) }
        return statistics
    }
}

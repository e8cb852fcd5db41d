/// Keeps the times of a stream's packets rising.
///
/// A jitter buffer computes the time of a packet from its RTP timestamp and its arrival. When a second of media more
/// arrives than has passed, as after a stall, the jitter buffer begins its computation again, and its times go back.
/// The frames that follow then get times one after the other until the jitter buffer has caught up.
struct RisingTimes {
    /// The step of frames that follow a jump back, in nanoseconds. Containers count in milliseconds.
    private static let step: UInt64 = 1_000_000
    /// How far back a codec that reorders frames goes, in RTP ticks: a second of audio, half a second of video. A stream
    /// that goes back further has restarted.
    private static let reordering: Int32 = 48_000
    /// How far the times may be ahead of the jitter buffer's, in nanoseconds: more than the second by which those go back.
    /// A sender of more than a thousand frames a second would otherwise move all later times into the future, also those of
    /// the streams that follow in the same receiver.
    private static let lead: UInt64 = 3_000_000_000

    private var last: (rtp: UInt32, time: UInt64)?

    /// The time of the next packet, in nanoseconds. All packets of a frame get the same time.
    ///
    /// - Parameter rtp: The RTP timestamp, which wraps around (RFC 3550, section 5.1).
    /// - Parameter time: The jitter buffer's time, in nanoseconds. A frame with an earlier RTP timestamp than one before
    ///   it, as of a codec that reorders frames, keeps it.
    mutating func next(_ rtp: UInt32, at time: UInt64) -> UInt64 {
        guard let last else {
            self.last = (rtp, time)
            return time
        }
        if rtp == last.rtp { return last.time }
        let ahead = Int32(bitPattern: rtp &- last.rtp)
        if ahead < 0, ahead > -Self.reordering { return time }
        let next = last.time + Self.step
        let rising = next > time + Self.lead ? time : max(time, next)
        self.last = (rtp, rising)
        return rising
    }
}

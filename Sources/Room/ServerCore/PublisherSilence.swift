internal import RTP

/// Whether a publisher that sends nothing has lost its connection. It is told the time.
///
/// One that only pauses sends reports after its last packet of media, about once a second and later seldom.
struct PublisherSilence {
    static let interval = TimeInterval.milliseconds(500)
    /// A connection without packets for this long is lost, if media was the last to arrive.
    private static let patience = TimeInterval.seconds(2)
    /// A report that arrives this much later than media came after it.
    private static let afterMedia = TimeInterval.milliseconds(300)
    /// The longest time between two reports of a publisher that pauses is 7.5 s, and one of them may be lost.
    private static let longest = TimeInterval.seconds(17)

    private(set) var isLost = false
    /// When anything arrived last, and for how long the server had stood still before.
    private var last = (heard: MonotonicTime.zero, stalled: TimeInterval.zero)
    /// For how long it had stood still at the last call.
    private var stalled = TimeInterval.zero

    /// Returns the new verdict if it has changed.
    ///
    /// - Parameters:
    ///   - packet: when the newest packet of media arrived. `.zero` before the first
    ///   - heard: when anything arrived last
    ///   - stalled: for how long the server has stood still so far, and read nothing
    mutating func update(
        packet: MonotonicTime, heard: MonotonicTime, stalled: TimeInterval, now: MonotonicTime
    ) -> Bool? {
        if heard != last.heard { last = (heard, self.stalled) }
        self.stalled = stalled
        let silence = now - max(packet, heard) - (stalled - last.stalled)
        let isLost =
            packet > .zero && silence >= Self.patience && (heard - packet < Self.afterMedia || silence >= Self.longest)
        guard isLost != self.isLost else { return nil }
        self.isLost = isLost
        return isLost
    }
}

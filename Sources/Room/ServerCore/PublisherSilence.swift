internal import RTP

/// Whether a publisher that sends nothing has lost its connection. It is told the time.
///
/// One that only pauses sends reports after its last packet of media, about once a second and later seldom.
struct PublisherSilence {
    static let interval = TimeInterval.milliseconds(500)
    /// A connection without packets for this long is lost, if media was the last to arrive.
    private static let patience = TimeInterval.seconds(2)
    /// A report that arrives this much later than media came after it.
    private static let last = TimeInterval.milliseconds(300)
    /// The longest time between two reports of a publisher that pauses is 7.5 s.
    private static let longest = TimeInterval.seconds(9)

    private(set) var isLost = false

    /// Returns the new verdict if it has changed.
    ///
    /// - Parameters:
    ///   - packet: when the newest packet of media arrived. `.zero` before the first
    ///   - heard: when anything arrived last
    mutating func update(packet: MonotonicTime, heard: MonotonicTime, now: MonotonicTime) -> Bool? {
        let silence = now - max(packet, heard)
        let isLost =
            packet > .zero && silence >= Self.patience && (heard - packet < Self.last || silence >= Self.longest)
        guard isLost != self.isLost else { return nil }
        self.isLost = isLost
        return isLost
    }
}

internal import RTP

/// Lowers the target while packets wait in a queue of the path, so that it drains, without changing the estimate: when
/// the queue is empty, the target is the estimate again.
enum QueueDrain {
    /// A shorter queue is jitter.
    static let tolerated = TimeInterval.milliseconds(30)
    /// The time in which the rest of the queue should drain.
    static let time = TimeInterval.milliseconds(500)
    /// The lowest share of the estimate.
    static let lowest = 0.5

    static func lowered(_ estimate: DataRate, queue: TimeInterval) -> DataRate {
        let excess = max(.zero, queue - tolerated)
        return estimate * max(lowest, 1 - excess.seconds / time.seconds)
    }
}

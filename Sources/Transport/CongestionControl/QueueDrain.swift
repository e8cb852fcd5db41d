internal import RTP

/// Lowers the target while packets wait in a queue of the path, so that it drains, without changing the estimate: when
/// the queue is empty, the target is the estimate again.
enum QueueDrain {
    /// A shorter queue is jitter.
    static let tolerated = TimeInterval.milliseconds(30)
    /// The time in which the rest of the queue should drain.
    static let time = TimeInterval.milliseconds(500)
    /// The same for the part that a large frame of our own made. It drains at the estimate, too, because the encoder makes
    /// up for the frame. Lower rates would make the next frames worse as well.
    static let ownTime = TimeInterval.seconds(2)
    /// The lowest share of the estimate.
    static let lowest = 0.5
    /// The same for a moment after the first feedback: the first probes of a slow link left the queue.
    static let lowestAtFirst = 0.8
    static let first = TimeInterval.milliseconds(500)

    /// - Parameters:
    ///   - foreign: the part of the queue that is not our own
    ///   - age: the time since the first feedback.
    static func lowered(
        _ estimate: DataRate, queue: TimeInterval, foreign: TimeInterval, sinceFirst: TimeInterval?
    ) -> DataRate {
        let isFirst = sinceFirst.map { $0 < first } ?? false
        let excess = max(.zero, queue - tolerated)
        let others = min(excess, foreign)
        let share = 1 - others.seconds / time.seconds - (excess - others).seconds / ownTime.seconds
        return estimate * max(isFirst ? lowestAtFirst : lowest, share)
    }
}

internal import RTP

/// When packets were sent and how much later they were received, by their numbers.
final class DelayLog {
    private var sendTimes: [UInt64: MonotonicTime] = [:]
    private(set) var milliseconds: [Double] = []

    func sent(_ number: UInt64, at time: MonotonicTime) { sendTimes[number] = time }

    func received(_ number: UInt64, at time: MonotonicTime) {
        guard let start = sendTimes.removeValue(forKey: number) else { return }
        milliseconds.append((time - start).milliseconds)
    }

    /// Begins another measurement; returns the delays of the one before and the packets that never came.
    func restart() -> (milliseconds: [Double], missing: Int) {
        defer {
            sendTimes = [:]
            milliseconds = []
        }
        return (milliseconds, sendTimes.count)
    }
}

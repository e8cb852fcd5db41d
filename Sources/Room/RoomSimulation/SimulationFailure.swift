public import RTP

/// A broken promise, with all that is needed to see it again.
public struct SimulationFailure: Error, CustomStringConvertible {
    /// The seed that shows the problem again.
    public let seed: UInt64
    /// Virtual time since the beginning.
    public let time: TimeInterval
    /// One sentence about the broken promise.
    public let problem: String

    public var description: String {
        "Seed \(seed) at \(time.seconds) s: \(problem)"
    }
}

/// A packet's position in a receiver's stream.
///
/// A source that restarts begins another epoch. Its sequence numbers, timestamps and picture ids are unrelated to those
/// of the previous epoch.
public struct StreamPosition: Sendable, Equatable {
    /// Grows with each restart of the stream: another SSRC, or a jump of the numbers.
    public var epoch: Int
    /// The sequence number within the epoch, without wrap.
    public var number: Int

    public init(epoch: Int, number: Int) {
        self.epoch = epoch
        self.number = number
    }
}

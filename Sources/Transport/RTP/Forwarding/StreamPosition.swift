/// Where a packet belongs in the stream that a receiver gets.
///
/// A source that begins anew starts another epoch: its sequence numbers, timestamps and picture ids say nothing about
/// those of the epoch before.
public struct StreamPosition: Sendable, Equatable {
    /// Grows with each new beginning of the stream: another SSRC, or numbers far from the ones before.
    public var epoch: Int
    /// The sequence number without its wrap, counted within the epoch.
    public var number: Int

    public init(epoch: Int, number: Int) {
        self.epoch = epoch
        self.number = number
    }
}

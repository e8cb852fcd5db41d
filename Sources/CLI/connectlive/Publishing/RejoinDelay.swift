/// The pauses between attempts to join a room. They double up to half a minute, and start over after a long stay.
///
/// Each is shortened at random by up to a half, so that the participants of a server that restarts do not all join at once.
struct RejoinDelay {
    static let first = Duration.seconds(1)
    static let longest = Duration.seconds(30)
    /// A stay of this length shows that the server works.
    static let longStay = Duration.seconds(10)

    private var next = Self.first

    /// Returns the pause after a stay in the room. An attempt that failed is a stay of no length.
    mutating func after(stay: Duration, using random: inout some RandomNumberGenerator) -> Duration {
        if stay >= Self.longStay { next = Self.first }
        defer { next = min(next * 2, Self.longest) }
        return next * Double.random(in: 0.5...1, using: &random)
    }
}

/// Reproducible randomness (xorshift64*).
public struct Seeded: RandomNumberGenerator {
    private var state: UInt64

    /// Neighbouring seeds give sequences that have nothing in common.
    public init(_ seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 | 1 }

    public mutating func next() -> UInt64 {
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        return state &* 2_685_821_657_736_338_717
    }
}

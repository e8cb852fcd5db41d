/// Deliberate loss at the socket, the same for the same seed and datagrams. STUN is not affected, so that ICE keeps the
/// path.
package struct Impairment: Sendable {
    /// Share of lost datagrams in each direction, 0...1.
    package var outgoingLoss: Double
    package var incomingLoss: Double
    /// Drops everything in both directions.
    package static let cut = Impairment(seed: 0, outgoingLoss: 1, incomingLoss: 1)

    // One random sequence for each direction, so that received datagrams do not change the outgoing loss.
    private var outgoing: SeededGenerator
    private var incoming: SeededGenerator

    package init(seed: UInt64, outgoingLoss: Double = 0, incomingLoss: Double = 0) {
        self.outgoingLoss = outgoingLoss
        self.incomingLoss = incomingLoss
        outgoing = SeededGenerator(seed: seed)
        incoming = SeededGenerator(seed: ~seed)
    }

    mutating func admitsOutgoing() -> Bool { outgoing.chance() >= outgoingLoss }

    mutating func admitsIncoming() -> Bool { incoming.chance() >= incomingLoss }
}

/// SplitMix64: small, fast and good enough to select packets.
private struct SeededGenerator: Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// A number in 0..<1.
    mutating func chance() -> Double {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        mixed ^= mixed >> 31
        return Double(mixed >> 11) / Double(UInt64(1) << 53)
    }
}

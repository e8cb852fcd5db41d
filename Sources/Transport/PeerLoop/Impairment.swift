internal import RTP

/// Deliberate loss at the socket, the same for the same seed and datagrams. STUN is not affected, so that ICE keeps the
/// path.
package struct Impairment: Sendable {
    /// Share of lost datagrams in each direction, 0...1.
    package var outgoingLoss: Double
    package var incomingLoss: Double
    /// Drops everything in both directions.
    package static let cut = Impairment(seed: 0, outgoingLoss: 1, incomingLoss: 1)

    // One random sequence for each direction, so that received datagrams do not change the outgoing loss.
    private var outgoing: RandomSource
    private var incoming: RandomSource

    package init(seed: UInt64, outgoingLoss: Double = 0, incomingLoss: Double = 0) {
        self.outgoingLoss = outgoingLoss
        self.incomingLoss = incomingLoss
        outgoing = RandomSource(seed: seed)
        incoming = RandomSource(seed: ~seed)
    }

    mutating func admitsOutgoing() -> Bool { Double.random(in: 0..<1, using: &outgoing) >= outgoingLoss }

    mutating func admitsIncoming() -> Bool { Double.random(in: 0..<1, using: &incoming) >= incomingLoss }
}

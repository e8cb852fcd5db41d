internal import RTP

/// The owner of each pair of addresses: a session of this agent, or another agent of the port.
///
/// Another agent's pairs are leased. It renews a lease with each check that it answers, and nothing ends one but time. A
/// lease therefore needs no message when a session ends, and a lost message does no harm for long.
struct PairTable {
    enum Owner {
        case session(ICESessionID)
        case agent(Lease)
    }

    struct Lease {
        /// The other agent.
        let place: Int
        let renewedAt: MonotonicTime
    }

    /// How long a pair stays leased after a check. Peers without a check for so long have lost their path.
    private let term: TimeInterval
    private var owners: [AddressPair: Owner] = [:]
    private(set) var leases = 0
    /// Expired leases are removed when there are so many.
    private var sweepAt = 64

    init(term: TimeInterval) { self.term = term }

    /// How many pairs sessions own.
    var sessionPairs: Int { owners.count - leases }

    subscript(pair: AddressPair) -> Owner? { owners[pair] }

    /// The other agent that owns a pair, if its lease was renewed less than `age` ago.
    func tenant(of pair: AddressPair, within age: TimeInterval, now: MonotonicTime) -> Int? {
        guard case .agent(let lease) = owners[pair], now - lease.renewedAt < age else { return nil }
        return lease.place
    }

    mutating func set(_ session: ICESessionID, for pair: AddressPair) {
        if case .agent = owners.updateValue(.session(session), forKey: pair) { leases -= 1 }
    }

    mutating func remove(_ pair: AddressPair) {
        if case .agent = owners.removeValue(forKey: pair) { leases -= 1 }
    }

    mutating func lease(_ pair: AddressPair, to place: Int, now: MonotonicTime) {
        if leases >= sweepAt { sweep(now: now) }
        let previous = owners.updateValue(.agent(Lease(place: place, renewedAt: now)), forKey: pair)
        if case .agent = previous { return }
        leases += 1
    }

    private mutating func sweep(now: MonotonicTime) {
        owners = owners.filter { _, owner in
            guard case .agent(let lease) = owner else { return true }
            return now - lease.renewedAt < term
        }
        leases = owners.values.count { if case .agent = $0 { true } else { false } }
        sweepAt = max(64, 2 * leases)
    }
}

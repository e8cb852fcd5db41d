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
    private var sweptAt = MonotonicTime.zero
    /// The most leases. Somebody with many addresses could ask for more.
    static let mostLeases = 16_384
    /// Between two sweeps of a full table.
    private static let sweepInterval = TimeInterval.seconds(1)

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

    /// Returns false if there are too many leases.
    mutating func lease(_ pair: AddressPair, to place: Int, now: MonotonicTime) -> Bool {
        if leases >= sweepAt, now - sweptAt >= Self.sweepInterval || leases < Self.mostLeases { sweep(now: now) }
        if leases >= Self.mostLeases {
            guard case .agent = owners[pair] else { return false }
        }
        let previous = owners.updateValue(.agent(Lease(place: place, renewedAt: now)), forKey: pair)
        if case .agent = previous { return true }
        leases += 1
        return true
    }

    private mutating func sweep(now: MonotonicTime) {
        owners = owners.filter { _, owner in
            guard case .agent(let lease) = owner else { return true }
            return now - lease.renewedAt < term
        }
        leases = owners.values.count { if case .agent = $0 { true } else { false } }
        sweepAt = min(max(64, 2 * leases), Self.mostLeases)
        sweptAt = now
    }
}

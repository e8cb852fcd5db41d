internal import RTP

/// Measures the link's rate by a probe: a cluster of packets sent faster than media.
struct ProbeResults: Sendable {
    /// The share of a cluster's packets and bytes that must arrive.
    static let neededShare = 0.8
    /// The same of an exploration, whose result is either used once or never.
    static let neededExplorationShare = 0.95
    /// Packets cannot arrive faster than this times the rate at which they were sent.
    static let maximumRatio = 2.0
    /// Below this ratio the link was full: its rate is the one of the arrivals.
    static let fullRatio = 0.9
    /// The share of a full link to use.
    static let utilization = 0.95
    static let maximumTime = TimeInterval.seconds(1)
    /// An exploration counts if its result exceeds the estimate by this factor.
    static let explorationGain = 1.15
    /// The same if it filled the link. With other traffic, it then displaced packets of others, and its result is more
    /// than its share.
    static let fullExplorationGain = 1.5

    struct Result: Equatable {
        /// The rate to send at.
        var rate: DataRate
        /// The rate of the link, if the probe filled it.
        var capacity: DataRate?
        /// An exploration filled the link, with too little more than the estimate to raise it.
        var isCapacityAlone = false
    }

    private struct Cluster {
        var id: UInt16
        var packets = 0
        var bytes = 0.0
        /// The bytes from the first to the last packet that no other one overtook. The times are of these two.
        var timedBytes = 0.0
        /// The bytes of overtaken packets that were sent after the last one.
        var bytesAfterLast = 0.0
        var numbers = (first: Int.max, last: Int.min)
        var firstSent = MonotonicTime.never
        var lastSent = MonotonicTime.zero
        var lastSentBytes = 0.0
        var firstArrival = MonotonicTime.never
        var firstArrivalBytes = 0.0
        var lastArrival = MonotonicTime.zero

        mutating func addInOrder(_ packet: PacketResult, at arrival: MonotonicTime) {
            let bytes = Double(packet.bytes)
            numbers = (min(numbers.first, packet.number), max(numbers.last, packet.number))
            firstSent = min(firstSent, packet.sent)
            if packet.sent > lastSent { (lastSent, lastSentBytes) = (packet.sent, bytes) }
            if arrival < firstArrival { (firstArrival, firstArrivalBytes) = (arrival, bytes) }
            lastArrival = max(lastArrival, arrival)
            timedBytes += bytes + bytesAfterLast
            bytesAfterLast = 0
        }

        /// Its arrival shows nothing about the link, which carried it with those around it.
        mutating func addOvertaken(_ packet: PacketResult) {
            guard packet.number > numbers.first else { return }
            if packet.number < numbers.last {
                timedBytes += Double(packet.bytes)
            } else {
                bytesAfterLast += Double(packet.bytes)
            }
        }
    }

    private var clusters: [Cluster] = []
    /// The packet with the highest number that arrived, of a probe or not.
    private var newest = (number: Int.min, arrival: MonotonicTime.zero)
    /// A probe filled the link if its packets arrived slower than they were sent, however mixed they are, and whichever were
    /// overtaken.
    private let isPlain: Bool

    init(isPlain: Bool = false) { self.isPlain = isPlain }

    /// Adds a packet that arrived, in the order of arrivals. Returns the measured rate when enough packets of its cluster
    /// did, and again for each further one.
    mutating func add(_ packet: PacketResult, of probe: ProbeCluster?) -> Result? {
        let isOvertaken = note(packet)
        guard let arrival = packet.arrival, let probe else { return nil }
        clusters.removeAll { $0.id != probe.id && $0.lastArrival + Self.maximumTime < arrival }
        if !clusters.contains(where: { $0.id == probe.id }) { clusters.append(Cluster(id: probe.id)) }
        guard let index = clusters.firstIndex(where: { $0.id == probe.id }) else { return nil }
        var cluster = clusters[index]
        if isOvertaken, !isPlain {
            cluster.addOvertaken(packet)
        } else {
            cluster.addInOrder(packet, at: arrival)
        }
        cluster.bytes += Double(packet.bytes)
        cluster.packets += 1
        clusters[index] = cluster
        let share = probe.explored == nil ? Self.neededShare : Self.neededExplorationShare
        guard cluster.packets >= Int(Double(probe.minimumPackets) * share), cluster.bytes >= probe.minimumBytes * share
        else { return nil }
        guard var result = rate(of: cluster) else { return nil }
        let gain = result.capacity == nil ? Self.explorationGain : Self.fullExplorationGain
        if let explored = probe.explored, result.rate < explored * gain {
            guard result.capacity != nil else { return nil }
            result.isCapacityAlone = true
        }
        return result
    }

    /// Notes a packet of a probe or none. Returns whether a packet with a higher number arrived before it.
    @discardableResult
    mutating func note(_ packet: PacketResult) -> Bool {
        guard let arrival = packet.arrival else { return false }
        guard packet.number <= newest.number else {
            newest = (packet.number, arrival)
            return false
        }
        return packet.number < newest.number && arrival > newest.arrival
    }

    private func rate(of cluster: Cluster) -> Result? {
        let sentTime = cluster.lastSent - cluster.firstSent
        let arrivalTime = cluster.lastArrival - cluster.firstArrival
        guard sentTime > .zero, sentTime <= Self.maximumTime, arrivalTime > .zero, arrivalTime <= Self.maximumTime
        else { return nil }
        // The time of the last packet's sending is not part of the one, that of the first arrival not of the other.
        let sent = DataRate(bytes: cluster.timedBytes - cluster.lastSentBytes, in: sentTime)
        let arrived = DataRate(bytes: cluster.timedBytes - cluster.firstArrivalBytes, in: arrivalTime)
        guard arrived / sent <= Self.maximumRatio else { return nil }
        // A large first packet and a small last one have the same effect on the rates, without a queue.
        let isSpread = isPlain || sentTime.seconds < arrivalTime.seconds * Self.fullRatio
        if isSpread, arrived < sent * Self.fullRatio {
            return Result(rate: arrived * Self.utilization, capacity: arrived)
        }
        return Result(rate: min(sent, arrived), capacity: nil)
    }
}

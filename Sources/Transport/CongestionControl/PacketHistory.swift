public import RTP

/// Why a packet is sent. In the order of the pacer's priorities.
public enum PacketKind: UInt8, Sendable, CaseIterable {
    case audio, retransmission, video, padding
}

/// A packet that was sent, and its fate as the receiver reports it.
public struct PacketResult: Sendable, Equatable {
    /// The transport-wide number, without its wrap.
    public var number: Int
    public var bytes: Int
    public var sent: MonotonicTime
    /// The probe cluster that the packet belongs to, 0 for none.
    public var probe: UInt16
    /// On the receiver's clock, whose offset is unknown. Nil if the packet is reported missing.
    public var arrival: MonotonicTime?
    /// An earlier feedback reported the packet missing.
    public var wasMissing: Bool

    public init(
        number: Int, bytes: Int, sent: MonotonicTime, probe: UInt16 = 0, arrival: MonotonicTime?,
        wasMissing: Bool = false
    ) {
        self.number = number
        self.bytes = bytes
        self.sent = sent
        self.probe = probe
        self.arrival = arrival
        self.wasMissing = wasMissing
    }
}

/// The packets that were sent, by their transport-wide number, until the receiver reports them.
struct PacketHistory: Sendable {
    /// The oldest packets are forgotten beyond these: 4 s at 25 Mbit/s.
    static let maximumPackets = 8192
    /// Packets without any report are forgotten after this.
    static let lifetime = TimeInterval.seconds(10)
    /// Packets reported missing may arrive this long after they were sent.
    static let lateness = TimeInterval.seconds(2)

    private struct Entry {
        enum Fate: UInt8 { case unknown, missing, arrived, ignored }

        var sent: MonotonicTime
        var bytes: UInt16
        var probe: UInt16
        var fate: Fate
    }

    private var entries = Ring<Entry>(capacity: 64)
    /// The number of the first entry.
    private var first = 0
    /// One more than the highest number that feedback covered.
    private var covered = 0
    /// The unwrapped reference time of the newest feedback, in its unit.
    private var reference: Int64?
    /// Bytes of packets that no feedback covered yet.
    private(set) var inFlight = 0

    private var end: Int { first + entries.count }

    /// The number of the next packet.
    var nextNumber: SequenceNumber { SequenceNumber(UInt16(truncatingIfNeeded: end)) }

    /// Adds a packet. It has `nextNumber`.
    mutating func sent(bytes: Int, probe: UInt16, now: MonotonicTime) {
        if entries.count == Self.maximumPackets { removeFirst() }
        entries.append(
            Entry(sent: now, bytes: UInt16(min(max(bytes, 0), 65535)), probe: probe, fate: .unknown))
        inFlight += bytes
    }

    /// The numbers of the known packets that a feedback covers. `received` looks up as many.
    func known(by feedback: TransportFeedback) -> Range<Int> {
        let base = end + feedback.base.distance(from: nextNumber)
        let from = min(max(base, first), end)
        return from..<max(from, min(base + Int(feedback.count), end))
    }

    /// Appends the fates that a feedback reports to `results`, in the order of numbers.
    mutating func received(_ feedback: TransportFeedback, into results: inout [PacketResult]) {
        let base = end + feedback.base.distance(from: nextNumber)
        // Of another end, or hostile: about packets that were never sent.
        guard base < end else { return }
        let known = self.known(by: feedback)
        var time = arrivalBase(of: feedback)
        var next = 0
        let tick = TransportFeedback.tick.nanoseconds
        for number in known {
            var arrival: MonotonicTime?
            while next < feedback.arrivals.count, base + Int(feedback.arrivals[next].offset) <= number {
                time += Int64(feedback.arrivals[next].ticks) * tick
                if base + Int(feedback.arrivals[next].offset) == number { arrival = Self.time(time) }
                next += 1
            }
            take(number, arrival, &results)
        }
        cover(upTo: known.upperBound)
    }

    /// Packets sent before are not reported any longer: they went another way.
    mutating func routeChanged() {
        for index in 0..<entries.count { entries[index].fate = .ignored }
        covered = end
        inFlight = 0
        reference = nil
    }

    private static func time(_ nanoseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: UInt64(max(0, nanoseconds)))
    }

    /// The feedback's reference time in nanoseconds, without its wrap and above zero.
    private mutating func arrivalBase(of feedback: TransportFeedback) -> Int64 {
        let wrapped = Int64(feedback.referenceTime)
        let turn: Int64 = 1 << 24
        var unwrapped = wrapped + turn
        if let reference {
            let step = Int64(Int32(truncatingIfNeeded: (wrapped - reference) << 8) >> 8)
            // A peer whose clock ran for decades jumps about on purpose.
            if (0...(1 << 34)).contains(reference + step) { unwrapped = reference + step }
        }
        reference = unwrapped
        return unwrapped * TransportFeedback.referenceUnit.nanoseconds
    }

    private mutating func take(_ number: Int, _ arrival: MonotonicTime?, _ results: inout [PacketResult]) {
        let index = number - first
        let entry = entries[index]
        guard entry.fate == .unknown || entry.fate == .missing else { return }
        // A receiver may report a missing packet again and again.
        if arrival == nil, entry.fate == .missing { return }
        entries[index].fate = arrival == nil ? .missing : .arrived
        results.append(
            PacketResult(
                number: number, bytes: Int(entry.bytes), sent: entry.sent, probe: entry.probe, arrival: arrival,
                wasMissing: entry.fate == .missing))
    }

    private mutating func cover(upTo stop: Int) {
        guard stop > covered else { return }
        // Packets that were forgotten are not on their way any more.
        let from = max(covered, first)
        if from < stop { for number in from..<stop { inFlight -= Int(entries[number - first].bytes) } }
        covered = stop
    }

    private mutating func removeFirst() {
        if first >= covered { inFlight -= Int(entries[0].bytes) }
        entries.removeFirst()
        first += 1
    }

    /// Forgets packets about which no report can matter any more.
    mutating func forget(_ now: MonotonicTime) {
        while entries.count > 0 {
            switch entries[0].fate {
            case .arrived, .ignored: break
            case .missing: if entries[0].sent + Self.lateness > now { return }
            case .unknown: if entries[0].sent + Self.lifetime > now { return }
            }
            removeFirst()
        }
    }
}

internal import CongestionControl
import RTP

/// A packet between its stream and its encryption.
struct PacedPacket {
    enum Role: Equatable {
        case media
        /// RTX of a packet that the peer requested, or that only measures the path.
        case repeated
        /// An RTX packet with so many bytes of padding, and nothing else.
        case padding(UInt8)
    }

    var sender: SenderID
    /// Its payload type is that of RTX for padding.
    var packet: SentPacket
    var role: Role
    var probe: UInt16 = 0
}

/// How fast one session sends: the congestion controller, the pacer, and the packets that the pacer holds.
///
/// A session has one from the first stream whose peer accepts transport-wide numbers or the times of sending, and from the
/// first estimate or congestion of another peer. Then all its media passes through here. Audio is never held, and no packet
/// longer than `Pacer.longestHold`.
final class SendingControl {
    /// The headers of UDP and IPv4, and the tag of SRTP.
    static let overhead = 28 + 16
    private static let datagramOverhead = 28
    /// Timers closer to each other than this are one.
    private static let resolution = TimeInterval.microseconds(200)
    /// The target is an event if it changes by this share, and otherwise at this interval.
    private static let change = 0.02
    private static let interval = TimeInterval.seconds(1)
    /// While too much is on its way to send anything, a packet at this interval provokes a report once the path is back.
    private static let keepAlive = TimeInterval.milliseconds(500)
    /// The highest estimate, relative to what the streams can use.
    private static let headroom = 1.5
    /// The rate with padding, relative to an estimate that should rise, and the least one.
    private static let (lead, least) = (1.25, DataRate.kilobits(50))

    let controller: CongestionController
    private let pacer: Pacer
    @exclusivity(unchecked) private var held: [PacedPacket?] = []
    @exclusivity(unchecked) private var free: [Int] = []
    /// Packets that may leave now, in the order of sending.
    @exclusivity(unchecked) private(set) var granted: [PacedPacket] = []
    @exclusivity(unchecked) private var (hasBegun, hasProbed) = (false, false)
    /// Whether packets have transport-wide numbers. Probes measure nothing without.
    @exclusivity(unchecked) private(set) var hasNumbers = false
    @exclusivity(unchecked) private var search = EstimateSearch()
    private var estimates = ReceiverEstimates()
    @exclusivity(unchecked) private var lookups = LookupBudget.feedback
    @exclusivity(unchecked) private var demand = DataRate.zero
    @exclusivity(unchecked) private var lastSent = MonotonicTime.zero
    /// When the pacer was last asked.
    @exclusivity(unchecked) private var asked = MonotonicTime.zero
    /// The pacer has the rates of an earlier decision of the controller.
    @exclusivity(unchecked) private var isStale = true
    /// When the padding of the search changes by itself.
    @exclusivity(unchecked) private var searchChange = MonotonicTime.never
    /// Whether the peer has sent REMB.
    @exclusivity(unchecked) private(set) var hasEstimate = false
    /// Whether the peer's receiver reports show congestion. Nil while they do not count.
    @exclusivity(unchecked) private var reportsCongestion: Bool?
    /// When the last transport feedback arrived. Nil before the first.
    @exclusivity(unchecked) private(set) var lastReport: MonotonicTime?
    /// Since when the path has had a queue, and whether that has been for long.
    @exclusivity(unchecked) private var queuedSince: MonotonicTime?
    @exclusivity(unchecked) private var isQueueLasting = false
    @exclusivity(unchecked) private var told: (rate: Int, at: MonotonicTime)?

    /// - Parameter burst: the packets of this time leave together
    init(_ settings: CongestionController.Settings, burst: TimeInterval) {
        controller = CongestionController(settings)
        pacer = Pacer(rate: controller.control.pacing, burst: burst)
    }

    /// The packets that wait, granted or not.
    var count: Int { held.count - free.count + granted.count }

    var nextTimeout: MonotonicTime {
        guard hasBegun else { return .never }
        let next = min(min(controller.nextTimeout, searchChange), pacer.nextTimeout)
        return next == .never ? .never : max(next, asked + Self.resolution)
    }

    // MARK: Packets

    /// Grants a packet that may leave now, or holds it. Returns whether it is granted; otherwise call `release`.
    ///
    /// - Parameter length: of the whole RTP packet, without SRTP's tag
    func enqueue(_ packet: PacedPacket, length: Int, kind: PacketKind, now: MonotonicTime) -> Bool {
        if hasBegun, !isStale, pacer.admit(bytes: length + Self.overhead, kind: kind, now: now) {
            asked = now
            granted.append(packet)
            return true
        }
        let handle = free.popLast() ?? held.count
        if handle == held.count { held.append(packet) } else { held[handle] = packet }
        pacer.enqueue(handle: handle, bytes: length + Self.overhead, kind: kind, now: now)
        return false
    }

    /// Whether a repeat of this length leaves in time at the pacing rate. After an outage, the peer requests everything at
    /// once, and may request again what still matters later.
    func hasRoomToRepeat(_ length: Int) -> Bool {
        Double(pacer.queuedBytes + length + Self.overhead)
            <= controller.control.pacing.bytes(in: Pacer.longestHold)
    }

    /// Grants the packets that may leave now.
    ///
    /// - Parameter padding: makes a packet that only measures the path, of about so many bytes, and its length. Nil if no
    ///   stream can have one.
    func release(now: MonotonicTime, padding: (Int) -> (packet: PacedPacket, length: Int)?) {
        guard hasBegun else { return }
        asked = now
        if isStale || now >= searchChange { apply(now: now) }
        while let grant = pacer.next(now: now) {
            switch grant {
            case .packet(let handle, _, _, let probe):
                guard var packet = take(handle) else { continue }
                packet.probe = probe
                granted.append(packet)
            case .padding(let bytes, let probe):
                guard var (packet, length) = padding(bytes - Self.overhead) else {
                    pacer.paddingSent(bytes: 0, now: now)
                    continue
                }
                packet.probe = probe
                granted.append(packet)
                length += Self.overhead
                pacer.paddingSent(bytes: length, now: now)
            }
        }
        if now - lastSent >= Self.keepAlive, granted.isEmpty, controller.control.isPaused, let (packet, _) = padding(1)
        {
            granted.append(packet)
        }
    }

    /// Packets of a stream that ends or changes to another store leave now.
    func grantAll(of sender: SenderID) {
        let held = held
        var handles: [Int] = []
        pacer.grant(
            where: { handle in
                guard held[handle]?.sender == sender else { return false }
                handles.append(handle)
                return true
            }, now: asked)
        for handle in handles { if let packet = take(handle) { granted.append(packet) } }
    }

    private func take(_ handle: Int) -> PacedPacket? {
        defer {
            held[handle] = nil
            free.append(handle)
        }
        return held[handle]
    }

    /// Passes the granted packets to `write`, each with its transport-wide number and time. The closure returns the length of the
    /// datagram, and nil if nothing was written.
    func drain(_ write: (PacedPacket, SendingStamp) -> (length: Int, hasNumber: Bool)?) {
        for packet in granted {
            let stamp = SendingStamp(number: controller.nextNumber, time: asked)
            guard let (length, hasNumber) = write(packet, stamp), hasNumber else { continue }
            controller.sent(bytes: length + Self.datagramOverhead, probe: packet.probe, now: asked)
            lastSent = asked
        }
        granted.removeAll(keepingCapacity: true)
    }

    // MARK: The controller

    /// The path can carry packets. The first probes begin when a stream can have padding, because without it they would
    /// end without a result.
    ///
    /// - Parameter hasNumbers: whether the peer accepts transport-wide numbers
    func begin(hasNumbers: Bool, canPad: Bool, now: MonotonicTime) {
        if !hasBegun { asked = now }
        hasBegun = true
        isStale = true
        if hasNumbers, !self.hasNumbers {
            self.hasNumbers = true
            if reportsCongestion != nil, !hasEstimate { controller.beginFeedback(now: now) }
            reportsCongestion = nil
        }
        guard hasNumbers, canPad, !hasProbed else { return }
        hasProbed = true
        controller.begin(now: now)
    }

    func handleTimeout(now: MonotonicTime) {
        controller.handleTimeout(now: now)
        isStale = true
    }

    func received(_ feedback: TransportFeedback, now: MonotonicTime) {
        guard lookups.takeAll(controller.lookups(for: feedback), now: now) else { return }
        lastReport = now
        controller.received(feedback, now: now)
        isStale = true
        queuedSince = controller.path.queue > Self.congestedQueue ? queuedSince ?? now : nil
        isQueueLasting = queuedSince.map { now - $0 >= Self.congestedTime } ?? false
    }

    /// - Parameter others: the rate of the streams that the peer makes no estimate for, in bits per second
    func received(_ estimate: ReceiverEstimate, others: Double, now: MonotonicTime) {
        hasEstimate = true
        var whole = estimates.joined(estimate, now: now)
        if !estimate.sources.isEmpty, whole.bitsPerSecond > 0 {
            let rate = Double(whole.bitsPerSecond) * ReceiverEstimates.headers + others
            whole.bitsPerSecond = UInt64(min(rate, 1e12))
        }
        controller.received(whole, now: now)
        search.heard(Double(whole.bitsPerSecond), demand: demand.bitsPerSecond, now: now)
        isStale = true
    }

    /// Follows the receiver reports of a peer that sends nothing else about the path.
    func follow(_ reports: ReportEstimate, now: MonotonicTime) {
        reportsCongestion = reports.isCongested
        controller.limit(to: reports.rate, now: now)
        isStale = true
    }

    /// - Parameter bitsPerSecond: that all streams together can use. Nil before there is media.
    func setDemand(_ bitsPerSecond: Int?, now: MonotonicTime) {
        let demand = bitsPerSecond.map { DataRate(bitsPerSecond: Double(max(0, $0))) }
        let settings = CongestionController.Settings()
        let maximum = max(settings.maximum, (demand ?? .zero) * Self.headroom)
        if controller.settings.maximum != maximum {
            controller.setLimits(minimum: settings.minimum, maximum: maximum, now: now)
        }
        controller.setDemand(demand, now: now)
        self.demand = demand ?? .zero
        search.setDemand(self.demand.bitsPerSecond)
        isStale = true
    }

    /// Packets take another way from now on.
    func routeChanged(now: MonotonicTime) {
        (queuedSince, isQueueLasting) = (nil, false)
        if hasBegun { controller.routeChanged(now: now) }
    }

    /// This process stood still until now.
    func stalled(for time: TimeInterval, now: MonotonicTime) {
        controller.stalled(for: time, now: now)
        pacer.stalled(for: time, now: now)
    }

    /// The target in bits per second, if it is news. 0 while too much is on its way without any report.
    func news(now: MonotonicTime) -> Int? {
        guard hasBegun else { return nil }
        let rate = target
        if let told, now - told.at < Self.interval {
            let step = abs(Double(rate - told.rate))
            guard step > Double(told.rate) * Self.change, step > 0 else { return nil }
        }
        told = (rate, now)
        return rate
    }

    private var target: Int {
        let control = controller.control
        return control.isPaused ? 0 : Int(min(control.target.bitsPerSecond, 1e12))
    }

    private static let congestedQueue = TimeInterval.milliseconds(60)
    /// A keyframe fills the queue of a narrow link, too. So a queue has to last for this long, unless it is longer than that of
    /// a keyframe.
    private static let congestedTime = TimeInterval.milliseconds(500)
    private static let longestKeyframe = TimeInterval.milliseconds(200)
    private static let congestedLoss = 0.1

    /// Whether a queue, losses or missing reports show that the path carries less than it gets. The target alone may be
    /// too low, after jitter or an outage.
    ///
    /// A peer that sends REMB alone knows that itself: the path carries less if its estimate is below the demand.
    var isCongested: Bool {
        if lastReport == nil, hasEstimate { return controller.control.target < demand }
        if let reportsCongestion { return reportsCongestion }
        return controller.control.isPaused || controller.isUnanswered || isQueueLasting
            || controller.path.queue > Self.longestKeyframe || controller.lossRatio > Self.congestedLoss
    }

    /// Whether a queue or missing reports show that the path carries no more. Losses alone do not.
    var isQueueing: Bool { controller.control.isPaused || controller.path.queue > Self.congestedQueue }

    /// - Parameter capacity: of packets that may wait
    func memory(for capacity: Int) -> PacketMemory {
        let packet = MemoryLayout<PacedPacket?>.stride
        return PacketMemory(held: (held.capacity + granted.capacity) * packet, limit: 4 * capacity * packet)
    }

    private func apply(now: MonotonicTime) {
        isStale = false
        let control = controller.control
        // More than the streams can use need not be tested for as long as losses limit the rate.
        var padding = min(control.padding, demand)
        // An estimate of payloads is lower than the rate that makes it.
        if !hasNumbers {
            let rate: DataRate
            (rate, searchChange) = searchRate(now: now)
            padding = min(rate, demand * Self.headroom)
        } else {
            searchChange = .never
        }
        pacer.setRates(pacing: control.pacing, padding: padding)
        while let probe = controller.takeProbe() { if hasNumbers { pacer.add(probe) } }
    }

    private func searchRate(now: MonotonicTime) -> (DataRate, until: MonotonicTime) {
        let (padding, until) = search.padding(now: now)
        return switch padding {
        case .none: (.zero, until)
        case .least: (Self.least, until)
        case .full: (max(controller.control.target * Self.lead, Self.least), until)
        }
    }

    var statistics: SendingStatistics {
        SendingStatistics(
            targetBitsPerSecond: target, estimatedBitsPerSecond: Int(min(controller.estimate.bitsPerSecond, 1e12)),
            queue: controller.path.queue, roundTrip: controller.path.roundTrip.smoothed, heldBytes: pacer.queuedBytes)
    }
}

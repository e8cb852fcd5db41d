public import RTP

/// Spreads packets over time, so that the bursts of frames fill no queue of the network.
///
/// It knows lengths and handles of packets, not their bytes. Audio is never held. Then come retransmissions, video and
/// padding. No packet is held longer than 150 ms: with more than that to send, the rate rises.
public final class Pacer {
    /// A packet to send, or room for padding.
    public enum Grant: Sendable, Equatable {
        /// - Parameter probe: the cluster that it belongs to, 0 for none
        case packet(handle: Int, kind: PacketKind, bytes: Int, probe: UInt16)
        /// Send up to this many bytes of padding, and report them with `paddingSent`.
        case padding(bytes: Int, probe: UInt16)
    }

    public static let longestHold = TimeInterval.milliseconds(150)
    /// The packets of this time leave together, so that timers and system calls are few.
    public static let burst = TimeInterval.milliseconds(5)
    /// The longest time that later packets wait for those that left before the rate allowed it.
    static let maximumDebt = TimeInterval.milliseconds(500)

    private struct Limits {
        var burst = 0.0
        var debt = 0.0
        var paddingDebt = 0.0
    }

    private struct Held {
        var handle: Int
        var bytes: Int
        var since: MonotonicTime
    }

    // A property for each kind: a look at one touches no reference count.
    @exclusivity(unchecked) private var audio = Ring<Held>(capacity: 8)
    @exclusivity(unchecked) private var retransmissions = Ring<Held>(capacity: 8)
    @exclusivity(unchecked) private var video = Ring<Held>(capacity: 8)
    @exclusivity(unchecked) private var padding = Ring<Held>(capacity: 8)
    private let burst: TimeInterval
    /// Whether the packets of a burst are leaving. The next one begins when all of it is paid for.
    @exclusivity(unchecked) private var isOpen = true
    @exclusivity(unchecked) private var rate: DataRate
    @exclusivity(unchecked) private var paddingRate = DataRate.zero
    /// The bytes of a burst, and the most that stay unpaid, at these rates.
    @exclusivity(unchecked) private var limits = Limits()
    /// The bytes that were sent and that the rate did not pay for yet.
    @exclusivity(unchecked) private var debt = 0.0
    @exclusivity(unchecked) private var paddingDebt = 0.0
    @exclusivity(unchecked) private var paidUntil: MonotonicTime?
    @exclusivity(unchecked) private var probing = ProbePacing()
    /// The padding that was granted and not reported.
    @exclusivity(unchecked) private var pendingPadding: UInt16?
    @exclusivity(unchecked) public private(set) var queuedBytes = 0
    @exclusivity(unchecked) public private(set) var queuedPackets = 0

    /// - Parameter burst: the packets of this time leave together
    public init(rate: DataRate, burst: TimeInterval = Pacer.burst) {
        (self.rate, self.burst) = (rate, burst)
        setRates(pacing: rate, padding: .zero)
    }

    public func setRates(pacing: DataRate, padding: DataRate) {
        rate = max(pacing, DataRate(bitsPerSecond: 1000))
        paddingRate = min(padding, rate)
        limits = Limits(
            burst: rate.bytes(in: burst), debt: rate.bytes(in: Self.maximumDebt),
            paddingDebt: paddingRate.bytes(in: Self.maximumDebt))
    }

    public func add(_ probe: ProbeCluster) { probing.add(probe) }

    /// Whether a packet may leave now. Otherwise `enqueue` it. The result is that of `enqueue` and `next`, at less cost.
    /// - Parameter bytes: its length with the headers of UDP and IP
    public func admit(bytes: Int, kind: PacketKind, now: MonotonicTime) -> Bool {
        guard probing.isIdle, pendingPadding == nil else { return false }
        let isAudio = kind == .audio
        guard queuedPackets == 0 || (isAudio && audio.isEmpty) else { return false }
        pay(now)
        if debt < 1 { isOpen = true }
        // A lower rate can have made a debt of an open burst too large.
        guard isAudio || (isOpen && debt <= limits.burst) else { return false }
        noteSent(Double(bytes), probe: 0, isAudio: isAudio, now)
        return true
    }

    /// Adds a packet to send.
    /// - Parameters:
    ///   - handle: returned with the grant. The pacer does not use it.
    ///   - bytes: its length with the headers of UDP and IP
    public func enqueue(handle: Int, bytes: Int, kind: PacketKind, now: MonotonicTime) {
        pay(now)
        let held = Held(handle: handle, bytes: bytes, since: now)
        switch kind {
        case .audio: audio.append(held)
        case .retransmission: retransmissions.append(held)
        case .video: video.append(held)
        case .padding: padding.append(held)
        }
        queuedBytes += bytes
        queuedPackets += 1
    }

    /// Removes the packets whose handle the closure names, because they leave now. Later ones wait until these are paid for.
    public func grant(where leavesNow: (Int) -> Bool, now: MonotonicTime) {
        pay(now)
        let audioCount = audio.count
        var place = 0
        forEachQueue { queue in
            for _ in 0..<queue.count {
                guard let held = queue.removeFirst() else { break }
                place += 1
                if leavesNow(held.handle) {
                    queuedBytes -= held.bytes
                    queuedPackets -= 1
                    noteSent(Double(held.bytes), probe: 0, isAudio: place <= audioCount, now)
                } else {
                    queue.append(held)
                }
            }
        }
    }

    /// This process stood still: packets that waited meanwhile were not held by the pacer.
    public func stalled(for time: TimeInterval, now: MonotonicTime) {
        if queuedPackets > 0 {
            forEachQueue { queue in
                for place in 0..<queue.count { queue[place].since = min(now, queue[place].since + time) }
            }
        }
        paidUntil = paidUntil.map { min(now, $0 + time) }
    }

    /// When to call `next` again. `.never` while nothing waits.
    public var nextTimeout: MonotonicTime {
        var next = probing.isIdle ? .never : probing.due
        let start = paidUntil ?? .zero
        if queuedPackets > 0 {
            if !audio.isEmpty { return .zero }
            let oldest = oldest
            let paid = start + currentRate(start, oldest: oldest).time(for: debt)
            let burst = isOpen ? min(burst, paid - start) : .zero
            next = min(next, MonotonicTime(nanoseconds: paid.nanoseconds - UInt64(max(0, burst.nanoseconds))))
            next = min(next, oldest + Self.longestHold)
        } else if paddingRate > .zero {
            next = min(next, start + max(rate.time(for: debt), paddingRate.time(for: paddingDebt)))
        }
        return next
    }

    /// The next packet or padding to send now. Call it until nil.
    public func next(now: MonotonicTime) -> Grant? {
        guard nextTimeout <= now, pendingPadding == nil else { return nil }
        pay(now)
        if debt < 1 { isOpen = true }
        if let probe = probing.current(now: now), audio.isEmpty {
            if let grant = take(probe: probe.probe, now) { return grant }
            pendingPadding = probe.probe
            return .padding(bytes: Int(probe.bytes), probe: probe.probe)
        }
        guard nextTimeout <= now else { return nil }
        if let grant = take(probe: 0, now) { return grant }
        guard paddingRate > .zero else { return nil }
        pendingPadding = 0
        return .padding(bytes: Int(max(1, paddingRate.bytes(in: Self.burst))), probe: 0)
    }

    /// Reports the padding sent for a grant. With 0, there was nothing to send: a probe ends.
    public func paddingSent(bytes: Int, now: MonotonicTime) {
        guard let probe = pendingPadding else { return }
        pendingPadding = nil
        if bytes > 0 {
            noteSent(Double(bytes), probe: probe, isAudio: false, now)
        } else if probe != 0 {
            probing.end()
        } else {
            paddingDebt += paddingRate.bytes(in: Self.burst)
        }
    }

    private func take(probe: UInt16, _ now: MonotonicTime) -> Grant? {
        guard queuedPackets > 0 else { return nil }
        guard let (kind, held) = takeFirst() else { return nil }
        queuedBytes -= held.bytes
        queuedPackets -= 1
        noteSent(Double(held.bytes), probe: probe, isAudio: kind == .audio, now)
        return .packet(handle: held.handle, kind: kind, bytes: held.bytes, probe: probe)
    }

    private func takeFirst() -> (PacketKind, Held)? {
        if let held = audio.removeFirst() { return (.audio, held) }
        if let held = retransmissions.removeFirst() { return (.retransmission, held) }
        if let held = video.removeFirst() { return (.video, held) }
        return padding.removeFirst().map { (.padding, $0) }
    }

    private func forEachQueue(_ body: (inout Ring<Held>) -> Void) {
        body(&audio)
        body(&retransmissions)
        body(&video)
        body(&padding)
    }

    private func noteSent(_ bytes: Double, probe: UInt16, isAudio: Bool, _ now: MonotonicTime) {
        if probe != 0 { probing.sent(bytes: bytes, now: now) }
        if !isAudio { debt = min(debt + bytes, limits.debt) }
        if debt >= limits.burst { isOpen = false }
        paddingDebt = min(paddingDebt + bytes, limits.paddingDebt)
    }

    private func pay(_ now: MonotonicTime) {
        let since = now - (paidUntil ?? now)
        paidUntil = max(now, paidUntil ?? now)
        guard since > .zero else { return }
        let paid = queuedPackets > 0 ? currentRate(now, oldest: oldest) : rate
        debt = max(0, debt - paid.bytes(in: since))
        paddingDebt = max(0, paddingDebt - paddingRate.bytes(in: since))
    }

    /// The rate that sends the packets that wait in time.
    private func currentRate(_ now: MonotonicTime, oldest: MonotonicTime) -> DataRate {
        let left = max(.milliseconds(1), Self.longestHold - max(.zero, now - oldest))
        return max(rate, DataRate(bytes: Double(queuedBytes) + debt, in: left))
    }

    /// Since when the packet waits that waits longest. `.never` without packets.
    private var oldest: MonotonicTime {
        var oldest = MonotonicTime.never
        if !audio.isEmpty { oldest = audio[0].since }
        if !retransmissions.isEmpty { oldest = min(oldest, retransmissions[0].since) }
        if !video.isEmpty { oldest = min(oldest, video[0].since) }
        if !padding.isEmpty { oldest = min(oldest, padding[0].since) }
        return oldest
    }
}

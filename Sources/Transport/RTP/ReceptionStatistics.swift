/// A receiver's counters for one stream, and its reports (RFC 3550, sections 6.4.1, A.1, A.3 and A.8). Also detects
/// duplicates.
public struct ReceptionStatistics: Sendable {
    public enum Arrival: Sendable, Equatable {
        /// A new packet, with its extended sequence number.
        case new(Int)
        /// As `new`, but the stream restarted: earlier numbers no longer count.
        case restarted(Int)
        case duplicate
        /// Too old to be distinguished from a duplicate.
        case tooOld
    }

    /// How many of the newest packets are checked for duplicates.
    public static let window = NumberWindow.standardLength
    /// A larger step forward is a restart if a second packet follows in order (RFC 3550, A.1, MAX_DROPOUT).
    public static let maximumDropout = 3000

    public let clockRate: UInt32
    private var unwrapper = SequenceUnwrapper()
    private var seen = NumberWindow()
    /// The numbers of `seen` that repairs alone have filled: their packets may still come.
    private var repaired = NumberWindow()
    private var base = 0
    private var badNext: SequenceNumber?
    private var received = 0
    private var expectedBefore = 0
    private var receivedBefore = 0
    /// Losses before the restart.
    private var lostBeforeRestart = 0
    private var lastArrival: MonotonicTime?
    private var lastTimestamp = RTPTimestamp(0)
    /// Jitter in 16ths of a timestamp unit.
    private var scaledJitter = 0
    private var lastSenderReport: (compact: UInt32, at: MonotonicTime)?

    public init(clockRate: UInt32) { self.clockRate = max(clockRate, 1) }

    public var hasReceived: Bool { unwrapper.highest != nil }
    /// The newest extended sequence number.
    public var highest: Int? { unwrapper.highest }

    /// The extended number. Nil before the first packet.
    public func extended(_ number: SequenceNumber) -> Int? { hasReceived ? unwrapper.extended(number) : nil }

    /// Whether a packet has not arrived that could still be distinguished from a duplicate. False before the first packet.
    package func lacks(_ number: SequenceNumber) -> Bool {
        guard let highest = unwrapper.highest else { return false }
        let extended = unwrapper.extended(number)
        guard extended >= base, extended > highest - Self.window, extended <= highest + Self.maximumDropout else {
            return false
        }
        return extended > highest || !seen.contains(extended)
    }

    private var expected: Int { unwrapper.highest.map { $0 - base + 1 } ?? 0 }

    /// Total number of lost packets. Late packets and repairs in the original stream count as received.
    public var lost: Int { lostBeforeRestart + expected - received }

    public var jitter: TimeInterval {
        TimeInterval(nanoseconds: Int64(scaledJitter / 16) * 1_000_000_000 / Int64(clockRate))
    }

    /// Records a packet. A retransmission, with its header restored, fills a gap but counts neither as received nor for
    /// the jitter, because reports describe the network. If the packet itself comes later, it is a duplicate that counts.
    public mutating func receive(
        _ sequenceNumber: SequenceNumber, timestamp: RTPTimestamp, isRetransmission: Bool = false, now: MonotonicTime
    ) -> Arrival {
        guard let highest = unwrapper.highest else {
            // A repair of an unknown stream cannot begin it.
            if isRetransmission { return .tooOld }
            begin(sequenceNumber)
            count(timestamp, now)
            return .new(base)
        }
        let number = unwrapper.extended(sequenceNumber)
        if number > highest + Self.maximumDropout || number <= highest - Self.window {
            if isRetransmission { return .tooOld }
            guard badNext == sequenceNumber else {
                badNext = sequenceNumber.advanced(by: 1)
                return .tooOld
            }
            lostBeforeRestart = lost
            begin(sequenceNumber)
            count(timestamp, now)
            return .restarted(base)
        }
        if number > highest {
            seen.remove((highest + 1)...number)
            repaired.remove((highest + 1)...number)
            _ = unwrapper.unwrap(sequenceNumber)
        } else if seen.contains(number) {
            if !isRetransmission, repaired.contains(number) {
                repaired.remove(number)
                count(timestamp, now)
            }
            return .duplicate
        }
        seen.insert(number)
        if isRetransmission { repaired.insert(number) } else { count(timestamp, now) }
        return .new(number)
    }

    private mutating func begin(_ sequenceNumber: SequenceNumber) {
        unwrapper = SequenceUnwrapper()
        base = unwrapper.unwrap(sequenceNumber)
        seen.removeAll()
        repaired.removeAll()
        seen.insert(base)
        badNext = nil
        received = 0
        expectedBefore = 0
        receivedBefore = 0
        lastArrival = nil
        scaledJitter = 0
    }

    private mutating func count(_ timestamp: RTPTimestamp, _ now: MonotonicTime) {
        received += 1
        if let lastArrival {
            // For times of seconds, the product stays far below 2^63. Longer silences are meaningless for jitter.
            let elapsed = (now - lastArrival).nanoseconds
            if elapsed < 10_000_000_000 {
                let ticks = Int(elapsed * Int64(clockRate) / 1_000_000_000)
                let difference = abs(ticks - timestamp.distance(from: lastTimestamp))
                // A jump of the timestamp, as when streams switch, is not jitter either.
                if difference < Int(clockRate) * 10 { scaledJitter += difference - (scaledJitter + 8) >> 4 }
            }
        }
        lastArrival = now
        lastTimestamp = timestamp
    }

    /// When the last packet arrived, if it has this timestamp.
    public func arrival(of timestamp: RTPTimestamp) -> MonotonicTime? {
        lastTimestamp == timestamp ? lastArrival : nil
    }

    /// Records a sender report of this stream for LSR and DLSR.
    public mutating func receiveSenderReport(_ ntp: NTPTime, now: MonotonicTime) {
        lastSenderReport = (ntp.compact, now)
    }

    /// The block for the next report. Its loss fraction counts from the previous block. Nil before the first packet.
    public mutating func reportBlock(ssrc: SSRC, now: MonotonicTime) -> ReportBlock? {
        guard let highest = unwrapper.highest else { return nil }
        let expectedSince = expected - expectedBefore
        let lostSince = expectedSince - (received - receivedBefore)
        expectedBefore = expected
        receivedBefore = received
        let fraction = expectedSince > 0 && lostSince > 0 ? min(255, lostSince * 256 / expectedSince) : 0
        var delay: UInt32 = 0
        if let lastSenderReport {
            let elapsed = max(0, (now - lastSenderReport.at).nanoseconds)
            // In 65536ths of a second. The field overflows after 18 hours.
            delay = UInt32(clamping: elapsed / 1_000_000_000 * 65536 + elapsed % 1_000_000_000 * 65536 / 1_000_000_000)
        }
        return ReportBlock(
            ssrc: ssrc, fractionLost: UInt8(fraction), cumulativeLost: lost,
            // Without the turn that `SequenceUnwrapper` adds.
            extendedHighestSequence: UInt32(truncatingIfNeeded: highest - 65536),
            jitter: UInt32(clamping: scaledJitter / 16), lastSenderReport: lastSenderReport?.compact ?? 0,
            delaySinceLastSenderReport: delay)
    }
}

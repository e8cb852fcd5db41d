/// Records when the packets of a peer arrive, and decides when to report them.
///
/// A report follows the one before after 100 ms. Browsers choose 50 to 250 ms, so that all reports use 5 % of the
/// bandwidth (`setBandwidth`). Without new arrivals nothing is due. A packet that overtook others is reported with them again when they arrive, for half a
/// second.
public struct TransportFeedbackRecorder: Sendable {
    public static let shortestInterval = TimeInterval.milliseconds(50)
    public static let longestInterval = TimeInterval.milliseconds(250)
    /// How long reported arrivals are kept for packets that arrive late.
    static let memory = TimeInterval.milliseconds(500)
    /// The most packets that one window covers. The oldest are forgotten beyond these.
    static let maximumWindow = 8192
    /// The longest report in bytes.
    static let maximumLength = 1000
    /// IPv4, UDP, SRTP and an average report, in bytes.
    static let overhead: Double = 20 + 8 + 10 + 30
    /// The share of the bandwidth that reports use.
    static let share = 0.05

    /// The time of an arrival in nanoseconds.
    private struct Slot {
        var number = -1
        var time: UInt64 = 0
    }

    private let sender: SSRC
    private var media = SSRC(0)
    private var unwrapper = SequenceUnwrapper()
    /// Arrivals by number, a power of two of them. Each has its number, so that nothing is cleared when numbers jump.
    private var slots = [Slot](repeating: Slot(), count: 64)
    /// The window: the packets from `first` up to `end`.
    private var first = 0
    private var end = 0
    /// The first packet of the next report. `end` if everything was reported.
    private var next = 0
    private var number: UInt8 = 0
    private var interval = TimeInterval.milliseconds(100)
    private var due = MonotonicTime.never
    private var lastReport: MonotonicTime?

    /// `sender` is the SSRC that the reports name as theirs.
    public init(sender: SSRC) { self.sender = sender }

    /// When a report is due. `.never` without new arrivals.
    public var nextTimeout: MonotonicTime { next < end ? due : .never }

    /// Adapts the interval to the bandwidth towards the peer, as browsers do. Sessions keep 100 ms: one that only receives
    /// has no estimate.
    /// - Parameter rate: in bits per second
    public mutating func setBandwidth(_ rate: Double) {
        let seconds = Self.overhead * 8 / max(1, rate * Self.share)
        let wished = TimeInterval(nanoseconds: Int64(min(seconds, 1) * 1e9))
        interval = min(max(wished, Self.shortestInterval), Self.longestInterval)
    }

    /// Records a packet that was authenticated. Duplicates count once.
    public mutating func received(_ wrapped: SequenceNumber, media: SSRC, at time: MonotonicTime) {
        let number = unwrapper.unwrap(wrapped)
        self.media = media
        if end == 0 { (first, end, next) = (number, number, number) }
        guard arrival(of: number) == 0, number >= first || grow(downTo: number) else { return }
        if number >= end { extend(to: number, time) }
        slots[place(of: number)] = Slot(number: number, time: max(1, time.nanoseconds))
        if next == end - 1 || due == .never { due = max(time, (lastReport ?? time) + interval) }
        next = min(next, number)
    }

    /// The next report, if one is due. More may be due immediately, until nil.
    public mutating func report(now: MonotonicTime) -> TransportFeedback? {
        guard nextTimeout <= now else { return nil }
        guard let feedback = build() else {
            (next, due) = (end, .never)
            return nil
        }
        lastReport = now
        if next == end { due = .never }
        return feedback
    }

    private func place(of number: Int) -> Int { number & (slots.count - 1) }

    /// When a packet arrived, in nanoseconds. Zero if it did not.
    private func arrival(of number: Int) -> UInt64 {
        let slot = slots[place(of: number)]
        return slot.number == number ? slot.time : 0
    }

    /// A packet older than the window extends it while there is room.
    private mutating func grow(downTo number: Int) -> Bool {
        guard end - number <= slots.count else { return false }
        first = number
        return true
    }

    private mutating func extend(to number: Int, _ now: MonotonicTime) {
        while first < next, first < end, isForgotten(first, now) { first += 1 }
        while number - first >= slots.count, slots.count < Self.maximumWindow { double() }
        first = max(first, number - slots.count + 1)
        end = number + 1
        if next < first { next = first }
    }

    private func isForgotten(_ number: Int, _ now: MonotonicTime) -> Bool {
        let time = arrival(of: number)
        return time == 0 || MonotonicTime(nanoseconds: time) + Self.memory < now
    }

    private mutating func double() {
        var larger = [Slot](repeating: Slot(), count: slots.count * 2)
        for number in first..<end where arrival(of: number) != 0 {
            larger[number & (larger.count - 1)] = slots[place(of: number)]
        }
        slots = larger
    }

    /// The report of the packets from `next` on, as many as fit. Nil if none of them arrived.
    private mutating func build() -> TransportFeedback? {
        guard let start = (next..<end).first(where: { arrival(of: $0) != 0 }) else { return nil }
        let base = max(next, start - Int(Int16.max))
        let unit = UInt64(TransportFeedback.referenceUnit.nanoseconds)
        let tick = UInt64(TransportFeedback.tick.nanoseconds)
        let reference = arrival(of: start) / unit
        var previous = reference * (unit / tick)
        var arrivals: [TransportFeedback.Arrival] = []
        var last = start
        for number in start..<min(end, base + Int(Int16.max)) {
            let time = arrival(of: number)
            guard time != 0 else { continue }
            let ticks = time / tick
            guard let delta = Int16(exactly: Int64(bitPattern: ticks &- previous)) else { break }
            arrivals.append(.init(offset: UInt16(number - base), ticks: delta))
            (previous, last) = (ticks, number)
            if arrivals.count == Self.maximumLength / 2 { break }
        }
        var feedback = TransportFeedback(
            sender: sender, media: media, base: SequenceNumber(UInt16(truncatingIfNeeded: base)),
            count: UInt16(last - base + 1), referenceTime: UInt32(truncatingIfNeeded: reference) & 0xff_ffff,
            number: number, arrivals: arrivals)
        while feedback.serializedLength > Self.maximumLength {
            feedback.arrivals.removeLast(feedback.arrivals.count / 2)
            feedback.count = (feedback.arrivals.last?.offset ?? 0) + 1
        }
        number &+= 1
        next = base + Int(feedback.count)
        return feedback
    }
}

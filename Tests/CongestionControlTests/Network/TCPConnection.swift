import TestSupport

/// A TCP connection (Reno with selective acknowledgements) whose segments share the bottleneck. Each acknowledgement lets
/// the next segments go. It transfers one file after another, with pauses between them, or one without an end.
///
/// Times are in seconds, and relative to the simulation's start.
struct TCPConnection {
    struct Transfers {
        /// Bytes of each file.
        var sizes: ClosedRange<Double>
        /// The mean of the pauses, which are exponential.
        var pause: Double
        /// It begins with a pause.
        var pausesFirst: Bool
    }

    static let segment = 1500.0
    private static let initialWindow = 10.0
    private static let reordering = 3
    private static let shortestTimeout = 1.0

    /// Nil for a transfer without an end.
    let transfers: Transfers?
    let stop: Double
    private(set) var left = Double.infinity
    private var window = initialWindow
    private var threshold = Double.infinity
    private var nextNumber = 0
    /// A loss of a segment below it was answered by half the window already.
    private var recovery = 0
    /// The segments on their way and when they were sent, in ascending order of numbers.
    private var outstanding: [(number: Int, sent: Double)] = []
    private var roundTrip = 0.2
    private var begun = 0.0
    /// When each file began, and how long its transfer took.
    private(set) var finished: [(at: Double, seconds: Double)] = []
    /// Bytes that arrived, with their times.
    private(set) var delivered: [(at: Double, bytes: Double)] = []

    init(transfers: Transfers? = nil, stop: Double) {
        self.transfers = transfers
        self.stop = stop
    }

    /// Nil while nothing is on its way.
    var timeout: Double? { outstanding.last.map { $0.sent + max(Self.shortestTimeout, 2 * roundTrip) } }

    mutating func begin(_ now: Double, _ random: inout Seeded) {
        begun = now
        left = transfers.map { Double.random(in: $0.sizes, using: &random) } ?? .infinity
        (window, threshold) = (Self.initialWindow, .infinity)
    }

    /// The number of the next segment to send now. Nil if the window is full, or the file is sent.
    mutating func take(_ now: Double) -> Int? {
        guard now < stop, left > 0, Double(outstanding.count) < window else { return nil }
        left -= Self.segment
        outstanding.append((nextNumber, now))
        nextNumber += 1
        return nextNumber - 1
    }

    /// A segment was acknowledged. Returns true if the file arrived with it.
    mutating func acknowledged(_ number: Int, _ now: Double) -> Bool {
        guard let index = outstanding.firstIndex(where: { $0.number == number }) else { return false }
        roundTrip = now - outstanding[index].sent
        outstanding.remove(at: index)
        delivered.append((now, Self.segment))
        while let oldest = outstanding.first, oldest.number + Self.reordering <= number {
            outstanding.removeFirst()
            left += Self.segment
            if oldest.number >= recovery {
                threshold = max(2, window / 2)
                window = threshold
                recovery = nextNumber
            }
        }
        window += window < threshold ? 1 : 1 / window
        guard left <= 0, outstanding.isEmpty else { return false }
        finished.append((begun, now - begun))
        return true
    }

    /// Nothing was acknowledged for too long.
    mutating func timedOut() {
        left += Self.segment * Double(outstanding.count)
        outstanding = []
        threshold = max(2, window / 2)
        window = 1
        recovery = nextNumber
    }
}

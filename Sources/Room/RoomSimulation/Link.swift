internal import PeerLoop
public import RTP

/// One client's way to the server: delay, jitter, loss and rate of each direction.
public struct Link: Sendable {
    /// One direction.
    public struct Direction: Sendable {
        /// One way, at least.
        public var delay: TimeInterval
        /// Added to the delay of each datagram, up to this. Datagrams overtake each other.
        public var jitter: TimeInterval = .zero
        /// The share of lost datagrams, 0...1.
        public var loss = 0.0
        /// The share of lost datagrams whose successor is lost too: bursts.
        public var burst = 0.0
        /// Bits per second. Nil means no limit.
        public var rate: Int?
        /// Bytes that wait for the rate. Later datagrams are dropped.
        public var queue = 64 * 1024
        /// The share of datagrams that arrive twice.
        public var duplicates = 0.0

        public init(delay: TimeInterval, jitter: TimeInterval = .zero, loss: Double = 0, burst: Double = 0) {
            self.delay = delay
            self.jitter = jitter
            self.loss = loss
            self.burst = burst
        }
    }

    public var up: Direction
    public var down: Direction

    public init(up: Direction, down: Direction) {
        self.up = up
        self.down = down
    }

    /// The same in both directions.
    public init(delay: TimeInterval, jitter: TimeInterval = .zero, loss: Double = 0, burst: Double = 0) {
        up = Direction(delay: delay, jitter: jitter, loss: loss, burst: burst)
        down = up
    }

    /// 1 ms each way, nothing lost.
    public static let wired = Link(delay: .milliseconds(1))
    /// 10 ms each way, 3 ms of jitter, 0.5 % lost, in short bursts.
    public static let wifi = Link(delay: .milliseconds(10), jitter: .milliseconds(3), loss: 0.005, burst: 0.3)
    /// 40 ms each way, 15 ms of jitter, 2 % lost, in bursts.
    public static let cellular = Link(delay: .milliseconds(40), jitter: .milliseconds(15), loss: 0.02, burst: 0.4)
}

/// The state of one direction of a link.
struct Wire {
    var model: Link.Direction
    /// Whether everything is lost.
    var isCut = false
    private var random: RandomSource
    private var wasLost = false
    /// When the last byte that waits for the rate has left.
    private var isFreeAt = MonotonicTime.zero

    init(_ model: Link.Direction, seed: UInt64) {
        self.model = model
        random = RandomSource(seed: seed)
    }

    /// The times at which the copies of a datagram arrive: none if it is lost, two if it is doubled.
    struct Arrivals {
        var first: MonotonicTime?
        var second: MonotonicTime?
    }

    mutating func arrivals(of bytes: Int, now: MonotonicTime) -> Arrivals {
        // Each datagram draws the same numbers, so that a cut does not change the fate of later ones.
        let fate = Double.random(in: 0..<1, using: &random)
        let delays = (delay(), delay())
        let doubled = Double.random(in: 0..<1, using: &random) < model.duplicates
        let isLost = fate < (wasLost ? max(model.burst, model.loss) : model.loss)
        wasLost = isLost
        guard !isLost, !isCut, let left = departure(of: bytes, now: now) else { return Arrivals() }
        return Arrivals(first: left + delays.0, second: doubled ? left + delays.1 : nil)
    }

    private mutating func delay() -> TimeInterval {
        let jitter = max(0, model.jitter.nanoseconds)
        return model.delay + TimeInterval(nanoseconds: Int64.random(in: 0...jitter, using: &random))
    }

    private mutating func departure(of bytes: Int, now: MonotonicTime) -> MonotonicTime? {
        guard let rate = model.rate, rate > 0 else { return now }
        let start = max(now, isFreeAt)
        let waiting = (start - now).seconds * Double(rate) / 8
        guard waiting + Double(bytes) <= Double(model.queue) else { return nil }
        isFreeAt = start + TimeInterval(nanoseconds: Int64(bytes) * 8 * 1_000_000_000 / Int64(rate))
        return isFreeAt
    }
}

/// One direction of a signalling connection: in order, nothing lost. While the link is cut, messages wait, and arrive some
/// time after its end, because TCP retries at growing intervals.
struct Pipe {
    private var lastArrival = MonotonicTime.zero
    private var random: RandomSource
    var delay: TimeInterval
    /// When the present cut began.
    var cutSince: MonotonicTime?
    private var held: [() -> Void] = []

    init(delay: TimeInterval, seed: UInt64) {
        self.delay = delay
        random = RandomSource(seed: seed)
    }

    /// When a message arrives that is sent now. Nil while the link is cut; `hold` keeps the message then.
    mutating func arrival(now: MonotonicTime) -> MonotonicTime? {
        guard cutSince == nil else { return nil }
        let slack = Int64.random(in: 0...max(1, delay.nanoseconds / 4), using: &random)
        lastArrival = max(lastArrival, now + delay + TimeInterval(nanoseconds: slack))
        return lastArrival
    }

    mutating func hold(_ delivery: @escaping () -> Void) { held.append(delivery) }

    /// The messages that waited for the end of the cut, and the time at which TCP tries again.
    mutating func resume(now: MonotonicTime) -> (time: MonotonicTime, deliveries: [() -> Void]) {
        let cut = cutSince.map { now - $0 } ?? .zero
        cutSince = nil
        // The pauses double from 200 ms, so the next try comes up to as long again after the cut as it lasted.
        var pause = TimeInterval.milliseconds(200)
        var tried = TimeInterval.zero
        while tried < cut {
            tried = tried + pause
            pause = min(pause * 2, .seconds(120))
        }
        lastArrival = max(lastArrival, now + (tried - cut) + delay)
        defer { held = [] }
        return (lastArrival, held)
    }
}

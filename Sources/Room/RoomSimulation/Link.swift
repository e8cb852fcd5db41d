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
        /// The share of lost datagrams whose successor is lost too: bursts. A burst does not outlast half a second without
        /// datagrams.
        public var burst = 0.0
        /// Bits per second. Nil means no limit.
        public var rate: Int?
        /// Bytes that wait for the rate. Later datagrams are dropped.
        public var queue = 64 * 1024
        /// The share of datagrams that arrive twice.
        public var duplicates = 0.0

        /// A direction that loses nothing, unless stated otherwise.
        public init(
            delay: TimeInterval, jitter: TimeInterval = .zero, loss: Double = 0, burst: Double = 0, rate: Int? = nil
        ) {
            self.delay = delay
            self.jitter = jitter
            self.loss = loss
            self.burst = burst
            self.rate = rate
        }
    }

    /// From the client to the server.
    public var up: Direction
    /// From the server to the client.
    public var down: Direction

    /// A link whose directions differ.
    public init(up: Direction, down: Direction) {
        self.up = up
        self.down = down
    }

    /// The same in both directions.
    public init(delay: TimeInterval, jitter: TimeInterval = .zero, loss: Double = 0, burst: Double = 0) {
        up = Direction(delay: delay, jitter: jitter, loss: loss, burst: burst)
        down = up
    }

    /// The longest round trip of a datagram that is not lost and does not wait for the rate.
    var longestRoundTrip: TimeInterval { up.delay + up.jitter + down.delay + down.jitter }

    /// 1 ms each way, nothing lost.
    public static let wired = Link(delay: .milliseconds(1))
    /// 10 ms each way, 3 ms of jitter, 0.5 % lost, in short bursts. 20 Mbit/s up, 50 down.
    public static let wifi = Link(
        up: Direction(delay: .milliseconds(10), jitter: .milliseconds(3), loss: 0.005, burst: 0.3, rate: 20_000_000),
        down: Direction(delay: .milliseconds(10), jitter: .milliseconds(3), loss: 0.005, burst: 0.3, rate: 50_000_000))
    /// 40 ms each way, 15 ms of jitter, 2 % lost, in bursts. 2 Mbit/s up, 8 down.
    public static let cellular = Link(
        up: Direction(delay: .milliseconds(40), jitter: .milliseconds(15), loss: 0.02, burst: 0.4, rate: 2_000_000),
        down: Direction(delay: .milliseconds(40), jitter: .milliseconds(15), loss: 0.02, burst: 0.4, rate: 8_000_000))
}

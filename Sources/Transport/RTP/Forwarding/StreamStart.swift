/// Puts the first packets of a video in order.
///
/// A jitter buffer begins with the first packet that it gets, and drops packets from before that. Without the first packet
/// of its first keyframe, a stream shows nothing until the next keyframe. So packets wait until the first one has arrived,
/// late or repaired. It is told the time.
public struct StreamStart: Sendable {
    /// How long packets wait for the first one.
    public static let timeout = TimeInterval.milliseconds(200)
    /// How many packets wait. A keyframe of 1080p has about 150.
    public static let capacity = 512

    private let first: SequenceNumber
    private var waiting: [(distance: Int, packet: [UInt8])] = []
    /// When `giveUp` is due. `.never` while no packet waits.
    public private(set) var deadline = MonotonicTime.never

    /// - Parameter first: the number of the stream's first packet.
    public init(at first: SequenceNumber) { self.first = first }

    /// Adds a packet. Returns nil if it has to wait, otherwise all packets in order, which ends the start.
    public mutating func add(_ packet: Span<UInt8>, _ number: SequenceNumber, now: MonotonicTime) -> [[UInt8]]? {
        let distance = number.distance(from: first)
        if waiting.isEmpty { deadline = now + Self.timeout }
        waiting.append((distance, packet.indices.map { packet[$0] }))
        guard distance <= 0 || waiting.count >= Self.capacity else { return nil }
        return giveUp()
    }

    /// Returns the packets that waited, in order, because the first one did not come in time. Ends the start.
    public mutating func giveUp() -> [[UInt8]] {
        defer { waiting = [] }
        deadline = .never
        return waiting.sorted { $0.distance < $1.distance }.map(\.packet)
    }
}

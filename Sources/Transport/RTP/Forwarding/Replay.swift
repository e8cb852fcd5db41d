/// A late receiver's way from a stream's last keyframe to the live packets. It is told the time.
///
/// Live packets that arrive meanwhile have an index too, so they wait for their turn in the store.
public struct Replay: Sendable {
    public enum Outcome: Sendable, Equatable {
        /// More packets wait. They may be sent from this time on.
        case more(MonotonicTime)
        /// All packets were sent. Live ones follow directly.
        case caughtUp
        /// The next packet was overwritten, so that a gap would follow.
        case overtaken
    }

    /// Packets sent at once, and the time between: at most 38 Mbit/s, with packets of 1200 bytes. A keyframe of 30 kB
    /// takes 6 ms, and a turn of the loop does not become longer.
    public static let share = 8
    public static let interval = TimeInterval.milliseconds(2)

    /// The keyframe's first packet. It is sent before those that overtook it.
    private let keyframe: Int
    private var hasBegun = false
    private var next: Int

    public init(from start: RecentPackets.Start) {
        keyframe = start.keyframe
        next = start.rest
    }

    /// Passes the packets that may be sent now, in order, each with its index.
    public mutating func run(
        _ packets: RecentPackets, of store: PacketStore, now: MonotonicTime,
        _ send: (Int, RecentPackets.Packet) -> Void
    ) -> Outcome {
        var share = Self.share
        if !hasBegun {
            guard store.contains(keyframe), var packet = packets[keyframe] else { return .overtaken }
            hasBegun = true
            share -= 1
            packet.isNewest = true
            send(keyframe, packet)
        }
        for _ in 0..<share {
            if next == keyframe { next += 1 }
            guard next < store.next else { return .caughtUp }
            guard store.contains(next), let packet = packets[next] else { return .overtaken }
            send(next, packet)
            next += 1
        }
        return next < store.next ? .more(now + Self.interval) : .caughtUp
    }
}

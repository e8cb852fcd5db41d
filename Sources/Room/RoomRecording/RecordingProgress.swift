internal import RTP
internal import ServerCore
internal import Synchronization

/// How far the packets of a file have come on their way to the disk. Callable on any thread.
final class RecordingProgress: Sendable {
    private let capacity: Int
    private let waiting = Atomic<Int>(0)
    private let count = Atomic<Int>(0)
    private let newest = Atomic<Int64>(0)

    /// - Parameter capacity: the most memory of packets that wait, in bytes.
    init(capacity: Int) { self.capacity = capacity }

    /// Packets that the disk has taken. The last one may be on its way.
    var packets: Int { count.load(ordering: .relaxed) }
    /// The time of the last one in the recording.
    var time: TimeInterval { TimeInterval(nanoseconds: newest.load(ordering: .relaxed)) }
    /// Whether at least half of the room is free.
    var isHalfEmpty: Bool { waiting.load(ordering: .relaxed) * 2 <= capacity }

    /// Notes packets that wait from now on. Returns false if there is no room for them. Only on one thread.
    func add(_ packets: RecordedPackets) -> Bool {
        guard waiting.load(ordering: .relaxed) + packets.cost <= capacity else { return false }
        waiting.add(packets.cost, ordering: .relaxed)
        return true
    }

    /// A packet of so many bytes leaves for the disk.
    func pass(_ length: Int, at nanoseconds: UInt64) {
        waiting.subtract(length + RecordedPackets.packetOverhead, ordering: .relaxed)
        newest.store(Int64(clamping: nanoseconds), ordering: .relaxed)
        count.add(1, ordering: .relaxed)
    }
}

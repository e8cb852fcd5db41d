internal import Glibc
internal import PeerIO
internal import PeerLoop
internal import PeerSession
internal import RTP

/// One SRTP library's cost of sealing and opening packets, without sessions and sockets.
struct SRTPCost: Encodable {
    var library: String
    var profile: String
    /// Of the RTP packet, without tag.
    var length: Int
    var ssrcs: Int
    /// Processor time per packet of each round, in nanoseconds.
    var seal: [Double] = []
    var open: [Double] = []
    /// Allocations per packet of each round. Empty without the malloc counter.
    var sealAllocations: [Double] = []
    var openAllocations: [Double] = []
}

/// Packets that one end seals and the other opens, in place, over and over.
///
/// The clear packet stands in its buffer again once it is opened, so nothing is copied, and each loop times the engine
/// alone. The buffers of a batch fit into the second-level cache.
final class SRTPLine<Engine: SRTPEngine> {
    private final class Slot {
        var packet = PacketBuffer()
    }

    private static var batch: Int { 64 }

    private let sender: Engine
    private let receiver: Engine
    private let length: Int
    private let ssrcs: Int
    private let slots = (0..<SRTPLine.batch).map { _ in Slot() }
    private var numbers: [UInt16]
    private var next = 0

    init(_ profile: SRTPProfile, length: Int, ssrcs: Int) throws {
        func keys() -> SRTPKeys {
            let count = profile.keyLength + profile.saltLength
            return SRTPKeys(
                profile: profile, local: [UInt8](repeating: 1, count: count),
                remote: [UInt8](repeating: 1, count: count))
        }
        var (near, far) = (keys(), keys())
        sender = try Engine(keys: &near)
        receiver = try Engine(keys: &far)
        self.length = length
        self.ssrcs = ssrcs
        numbers = [UInt16](repeating: 0, count: ssrcs)
        for slot in slots {
            let isBuilt = slot.packet.assignRTP(
                payloadType: 96, sequenceNumber: SequenceNumber(0), timestamp: RTPTimestamp(0), ssrc: SSRC(0),
                payload: [UInt8](repeating: 0x5a, count: length - RTPHeader.minimumLength))
            guard isBuilt else { throw BenchmarkError("A packet of \(length) bytes is too long.") }
        }
    }

    /// Adds a round of some batches to the figures.
    func measure(batches: Int, counter: AllocationCounter?, into cost: inout SRTPCost) throws {
        var time = (seal: Int64(0), open: Int64(0))
        var allocations = (seal: UInt64(0), open: UInt64(0))
        var failures = 0
        for _ in 0..<batches {
            for slot in slots {
                let place = next % ssrcs
                next += 1
                slot.packet.setUInt32(UInt32(place), at: 8)
                slot.packet.setUInt16(numbers[place], at: 2)
                numbers[place] &+= 1
            }
            let before = (time: processorTime(), count: counter?.count ?? 0)
            for slot in slots where !sender.protectRTP(&slot.packet) { failures += 1 }
            let between = (time: processorTime(), count: counter?.count ?? 0)
            for slot in slots where !receiver.unprotectRTP(&slot.packet) { failures += 1 }
            let after = (time: processorTime(), count: counter?.count ?? 0)
            time.seal += between.time - before.time
            time.open += after.time - between.time
            allocations.seal += between.count - before.count
            allocations.open += after.count - between.count
        }
        guard failures == 0, slots.allSatisfy({ $0.packet.count == length }) else {
            throw BenchmarkError("\(cost.library) refused \(failures) packets.")
        }
        let packets = Double(batches * Self.batch)
        cost.seal.append(Double(time.seal) / packets)
        cost.open.append(Double(time.open) / packets)
        guard counter != nil else { return }
        cost.sealAllocations.append(Double(allocations.seal) / packets)
        cost.openAllocations.append(Double(allocations.open) / packets)
    }
}

/// The counts of `malloc-counter` in this process, read without an allocation.
final class AllocationCounter {
    private let file: Int32

    /// Nil if the counter is not loaded.
    init?() {
        guard let path = getenv("MALLOC_COUNTER_FILE") else { return nil }
        file = Glibc.open(path, O_RDONLY)
        guard file >= 0 else { return nil }
    }

    deinit { close(file) }

    /// Allocations of all threads so far.
    var count: UInt64 {
        var counts: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        let length = withUnsafeMutableBytes(of: &counts) { pread(file, $0.baseAddress, $0.count, 0) }
        return length == 32 ? counts.0 + counts.3 : 0
    }
}

private func processorTime() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

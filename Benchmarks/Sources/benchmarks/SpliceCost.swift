internal import Glibc
internal import RTP

/// The part of forwarding that joins streams: `Splice` alone, without encryption and sockets.
enum SpliceCost {
    private static let receivers = 12
    private static let packets = 200_000
    /// A keyframe after so many packets: a second of the load.
    private static let keyframeInterval = 510

    /// Processor time in nanoseconds per packet and receiver.
    static func measure() throws -> Double {
        var splices = (0..<receivers).map { Splice(firstSequenceNumber: SequenceNumber(UInt16($0 * 1000))) }
        for index in splices.indices { splices[index].begin(clockRate: UInt32(LoadPacket.clockRate), clock: nil) }
        let payloads = [try payload(isKeyframe: false), try payload(isKeyframe: true)]
        var sum = 0
        let start = processorTime()
        for number in 0..<packets {
            let packet = Splice.Packet(
                position: StreamPosition(epoch: 0, number: number), timestamp: RTPTimestamp(UInt32(number) * 180),
                isNewest: true, payload: payloads[number % keyframeInterval == 0 ? 1 : 0])
            let now = MonotonicTime.zero + .milliseconds(Int64(number) * 2)
            for index in splices.indices {
                sum += Int(splices[index].take(packet, now: now)?.sequenceNumber.rawValue ?? 0)
            }
        }
        let time = processorTime() - start
        guard sum > 0 else { throw BenchmarkError("The splices forwarded nothing.") }
        return Double(time) / Double(packets * receivers)
    }

    private static func payload(isKeyframe: Bool) throws -> PayloadDescriptor {
        var packet = PacketBuffer()
        LoadPacket.write(
            LoadPacket.Position(number: 0, frame: 0, isFirst: true, isLast: true, isKeyframe: isKeyframe),
            ssrc: SSRC(1),
            payloadType: 96, into: &packet)
        guard let header = RTPHeader(parsing: packet),
            let payload = PayloadDescriptor(parsing: packet, header: header, as: .vp8)
        else { throw BenchmarkError("The load's packets are not VP8.") }
        return payload
    }

    private static func processorTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

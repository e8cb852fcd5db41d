/// The header of a packet of Opus (RFC 6716, 3.1).
package enum OpusPacket {
    /// Of a frame, by the packet's configuration, in microseconds.
    private static let frames: [[UInt64]] = [
        [10_000, 20_000, 40_000, 60_000], [10_000, 20_000, 40_000, 60_000], [10_000, 20_000, 40_000, 60_000],
        [10_000, 20_000, 10_000, 20_000], [2500, 5000, 10_000, 20_000], [2500, 5000, 10_000, 20_000],
        [2500, 5000, 10_000, 20_000], [2500, 5000, 10_000, 20_000],
    ]

    /// The length of a packet in nanoseconds. Nil for an invalid one.
    package static func duration(of packet: RawSpan) -> UInt64? {
        guard packet.byteCount > 0 else { return nil }
        let first = packet.unsafeLoad(fromByteOffset: 0, as: UInt8.self)
        let count: UInt64
        switch first & 3 {
        case 0: count = 1
        case 1, 2: count = 2
        default:
            guard packet.byteCount > 1 else { return nil }
            count = UInt64(packet.unsafeLoad(fromByteOffset: 1, as: UInt8.self) & 0x3f)
        }
        let length = frames[Int(first >> 5)][Int(first >> 3 & 3)] * count
        return (1...120_000).contains(length) ? length * 1000 : nil
    }
}

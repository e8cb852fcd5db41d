/// When a packet was sent, as the header extension `abs-send-time` carries it
/// (https://webrtc.org/experiments/rtp-hdrext/abs-send-time): seconds with 18 bits after the binary point, in 24 bits, which
/// wrap after 64 s. A receiver estimates from it how much the path carries (`ReceiverEstimate`).
public struct AbsoluteSendTime: Sendable, Hashable {
    /// The value's length in bytes.
    public static let length = 3
    /// Units of a second.
    public static let ticksPerSecond: Int64 = 1 << 18

    /// 24 bits.
    public var ticks: UInt32

    public init(ticks: UInt32) { self.ticks = ticks & 0xff_ffff }

    public init(_ time: MonotonicTime) {
        let (seconds, rest) = time.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        self.init(ticks: UInt32(truncatingIfNeeded: seconds << 18 | (rest << 18) / 1_000_000_000))
    }

    /// The ticks from an earlier time to this one, if they are less than 32 s apart.
    public func ticks(since earlier: AbsoluteSendTime) -> Int32 {
        Int32(bitPattern: (ticks &- earlier.ticks) << 8) >> 8
    }

    /// Nil without the extension.
    public static func read(id: UInt8, _ header: RTPHeader, in packet: borrowing PacketBuffer) -> AbsoluteSendTime? {
        guard let range = header.headerExtension(id: id, in: packet), range.count == length else { return nil }
        return AbsoluteSendTime(ticks: packet.uint24(at: range.lowerBound))
    }
}

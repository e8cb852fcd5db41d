/// The bandwidth that a receiver estimates for all streams that it receives: REMB (draft-alvestrand-rmcat-remb-03,
/// section 2.2).
public struct ReceiverEstimate: Sendable, Equatable {
    public var sender: SSRC
    /// Bits per second. Written with 18 significant bits.
    public var bitsPerSecond: UInt64
    /// The streams that it is about. At most 255.
    public var sources: [SSRC]

    public init(sender: SSRC, bitsPerSecond: UInt64, sources: [SSRC]) {
        self.sender = sender
        self.bitsPerSecond = bitsPerSecond
        self.sources = sources
    }

    /// The feedback of `rtcp-fb` lines (section 2.3).
    public static let feedback = "goog-remb"

    /// "REMB".
    private static let name: UInt32 = 0x5245_4d42

    /// Whether application-layer feedback is an estimate.
    static func isNamed(_ packet: borrowing PacketBuffer, _ body: Int, _ end: Int) -> Bool {
        body + 16 <= end && packet.uint32(at: body + 8) == name
    }

    /// Reads the body of a packet that `isNamed`. Nil if its sources overrun.
    init?(reading packet: borrowing PacketBuffer, body: Int, end: Int) {
        let count = Int(packet.bytes[body + 12])
        guard body + 16 + 4 * count <= end else { return nil }
        sender = SSRC(packet.uint32(at: body))
        let exponent = packet.bytes[body + 13] >> 2
        let mantissa = UInt64(packet.uint24(at: body + 13) & 0x3_ffff)
        // An exponent beyond 46 exceeds 64 bits.
        bitsPerSecond = exponent > 46 && mantissa > 0 ? .max : mantissa << UInt64(exponent)
        sources = (0..<count).map { SSRC(packet.uint32(at: body + 16 + 4 * $0)) }
    }

    var serializedLength: Int { 20 + 4 * min(sources.count, 255) }

    func write(at start: Int, to packet: inout PacketBuffer) {
        let exponent = max(0, 64 - bitsPerSecond.leadingZeroBitCount - 18)
        packet.setUInt32(sender.rawValue, at: start)
        packet.setUInt32(0, at: start + 4)
        packet.setUInt32(Self.name, at: start + 8)
        let count = UInt32(min(sources.count, 255))
        packet.setUInt32(
            count << 24 | UInt32(exponent) << 18 | UInt32(truncatingIfNeeded: bitsPerSecond >> UInt64(exponent)),
            at: start + 12)
        for (index, source) in sources.prefix(255).enumerated() {
            packet.setUInt32(source.rawValue, at: start + 16 + 4 * index)
        }
    }
}

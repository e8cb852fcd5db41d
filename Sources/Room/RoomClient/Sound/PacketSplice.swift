internal import RTP

/// Makes the RTP packets of one audio stream after another look like one stream, for an input that stays.
///
/// The first packet of a stream gets the next number, and the timestamp at which audio that arrives now is due. The others keep
/// their distance. So the jitter buffer sees neither a loss nor a jump, whatever it would do about them.
struct PacketSplice {
    private static let headerLength = 12

    private var newest: UInt16?
    /// The sums by which numbers and timestamps differ from those of the stream.
    private var numbers: UInt16 = 0
    private var timestamps: UInt32 = 0
    private var isBeginning = true
    /// The timestamp of the stream's first packet, as it is written, or a later one: timestamps compare over 12 hours.
    private var first: UInt32?

    /// Another stream begins with the next packet.
    mutating func begin() {
        isBeginning = true
        first = nil
    }

    /// Returns the packet as a part of the one stream. Nil if it is too short.
    ///
    /// - Parameter next: asked for the timestamp of audio that arrives now. Nil without any before.
    mutating func rewrite(
        _ packet: Span<UInt8>, payloadType: UInt8, continuing next: () -> UInt32?
    ) -> [UInt8]? {
        guard packet.count >= Self.headerLength else { return nil }
        var bytes = packet.indices.map { packet[$0] }
        let number = UInt16(bytes[2]) << 8 | UInt16(bytes[3])
        let timestamp = (4..<8).reduce(0) { $0 << 8 | UInt32(bytes[$1]) }
        if isBeginning {
            isBeginning = false
            numbers = newest.map { $0 &+ 1 &- number } ?? 0
            timestamps = next().map { $0 &- timestamp } ?? 0
            first = timestamp &+ timestamps
        }
        let (writtenNumber, writtenTime) = (number &+ numbers, timestamp &+ timestamps)
        if newest.map({ Int16(bitPattern: writtenNumber &- $0) > 0 }) ?? true { newest = writtenNumber }
        if let first, Int32(bitPattern: writtenTime &- first) > 1 << 30 { self.first = writtenTime &- (1 << 29) }
        bytes[1] = bytes[1] & 0x80 | payloadType
        (bytes[2], bytes[3]) = (UInt8(truncatingIfNeeded: writtenNumber >> 8), UInt8(truncatingIfNeeded: writtenNumber))
        for index in 0..<4 {
            bytes[4 + index] = UInt8(truncatingIfNeeded: writtenTime >> (24 - 8 * UInt32(index)))
            // One source.
            bytes[8 + index] = 0
        }
        return bytes
    }

    /// The stream's own timestamp of a written one. Nil for one of the stream before.
    func original(_ written: UInt32) -> UInt32? {
        guard let first, Int32(bitPattern: written &- first) >= 0 else { return nil }
        return written &- timestamps
    }
}

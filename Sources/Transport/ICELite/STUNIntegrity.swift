/// An HMAC-SHA1 as a value: the contents of MESSAGE-INTEGRITY (RFC 8489, section 14.5).
public struct STUNIntegrity: Sendable {
    public static let length = 20

    let high: UInt64
    let middle: UInt64
    let low: UInt32

    /// The 20 bytes that begin at `offset`, which must exist.
    public init(_ bytes: Span<UInt8>, at offset: Int = 0) {
        high = bytes.uint64(at: offset)
        middle = bytes.uint64(at: offset + 8)
        low = bytes.uint32(at: offset + 16)
    }

    /// Whether both are equal, in constant time.
    public func matches(_ other: Self) -> Bool {
        (high ^ other.high) | (middle ^ other.middle) | UInt64(low ^ other.low) == 0
    }
}

/// A password that signs and verifies STUN messages. The target that has a SHA-1 implements it.
public protocol STUNKey: AnyObject {
    /// - Parameters:
    ///   - password: The key of the HMAC (RFC 8489, section 9.1.1), 22...64 bytes.
    init(password: [UInt8])

    /// Returns the HMAC-SHA1 of a big-endian word and the bytes behind it. Does not allocate.
    ///
    /// The word is the message's type and the length that the sum counts. It differs from the datagram's first word if
    /// FINGERPRINT follows.
    func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity
}

extension STUNMessage {
    /// Whether MESSAGE-INTEGRITY is present and is the sum of the message before it under this key.
    public func isSigned(with key: some STUNKey, in datagram: Span<UInt8>) -> Bool {
        guard let integrityOffset else { return false }
        return STUNIntegrity(datagram, at: integrityOffset + 4).matches(
            Self.integrity(of: datagram, before: integrityOffset, with: key))
    }

    /// The sum of a message whose MESSAGE-INTEGRITY begins at `offset`. The length in its header counts as if it ended
    /// with that attribute.
    static func integrity(of datagram: Span<UInt8>, before offset: Int, with key: some STUNKey) -> STUNIntegrity {
        let length = UInt32(offset + 4 + STUNIntegrity.length - headerLength)
        return key.sum(
            of: UInt32(datagram.uint16(at: 0)) << 16 | length, and: datagram.extracting(4..<offset))
    }

    /// Whether FINGERPRINT is present and correct (RFC 8489, section 14.7), as every message of ICE has it (RFC 8445,
    /// section 7.1).
    public func hasFingerprint(in datagram: Span<UInt8>) -> Bool {
        guard let fingerprintOffset else { return false }
        return datagram.uint32(at: fingerprintOffset + 4) == Self.fingerprint(of: datagram, before: fingerprintOffset)
    }

    static func fingerprint(of datagram: Span<UInt8>, before offset: Int) -> UInt32 {
        CRC32.sum(of: datagram.extracting(0..<offset)) ^ 0x5354_554e
    }
}

/// The checksum of ITU V.42 that Ethernet and zip use.
enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { rest, _ in rest >> 1 ^ (rest & 1 == 0 ? 0 : 0xedb8_8320) }
    }

    static func sum(of bytes: Span<UInt8>) -> UInt32 {
        let table = table
        var rest = UInt32.max
        for index in bytes.indices { rest = rest >> 8 ^ table[Int(UInt8(truncatingIfNeeded: rest) ^ bytes[index])] }
        return ~rest
    }
}

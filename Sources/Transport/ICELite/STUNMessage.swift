/// The 96 bits that tie a STUN response to its request (RFC 8489, section 5).
public struct STUNTransaction: Hashable, Sendable {
    /// The first four bytes, big-endian.
    public let high: UInt32
    /// The last eight bytes, big-endian.
    public let low: UInt64

    public init(high: UInt32, low: UInt64) {
        self.high = high
        self.low = low
    }
}

/// The types of the STUN attributes that ICE uses (RFC 8489, section 18.3; RFC 8445, section 16.1).
package enum STUNAttribute {
    package static let username: UInt16 = 0x0006
    package static let messageIntegrity: UInt16 = 0x0008
    package static let errorCode: UInt16 = 0x0009
    package static let unknownAttributes: UInt16 = 0x000a
    package static let xorMappedAddress: UInt16 = 0x0020
    package static let priority: UInt16 = 0x0024
    package static let useCandidate: UInt16 = 0x0025
    package static let fingerprint: UInt16 = 0x8028
    package static let iceControlled: UInt16 = 0x8029
    package static let iceControlling: UInt16 = 0x802a

    /// Whether a message may have this attribute without being refused: it is optional, or known. REALM, NONCE and
    /// MESSAGE-INTEGRITY-SHA256 are known, and ignored: ICE uses short-term credentials and SHA-1.
    static func isUnderstood(_ type: UInt16) -> Bool {
        switch type {
        case 0x8000...: true
        case username, messageIntegrity, errorCode, unknownAttributes, xorMappedAddress, priority, useCandidate: true
        case 0x0001, 0x0014, 0x0015, 0x001c: true
        default: false
        }
    }
}

/// A STUN message (RFC 8489, section 5) as numbers and offsets into its datagram, without own memory.
///
/// Parsing checks every length against the datagram: the message fills it, and each attribute lies inside. The offsets are
/// valid for that datagram only. Of several attributes with one type the first counts, and only FINGERPRINT counts behind
/// MESSAGE-INTEGRITY (RFC 8489, sections 14 and 14.5).
public struct STUNMessage: Sendable, Equatable {
    /// The class of a message (RFC 8489, section 5).
    public enum Kind: UInt16, Sendable {
        case request
        case indication
        case success
        case error
    }

    /// The role that the sender claims, with its tie-breaker (RFC 8445, section 7.1.3).
    public enum Role: Sendable, Equatable {
        case controlling(UInt64)
        case controlled(UInt64)
    }

    public static let headerLength = 20
    static let magicCookie: UInt32 = 0x2112_a442
    /// The method of all messages of ICE.
    public static let binding: UInt16 = 1

    public let kind: Kind
    public let method: UInt16
    public let transaction: STUNTransaction
    /// USERNAME's value. Of a check, the receiver's ufrag, a colon, and the sender's.
    public private(set) var username: Range<Int>?
    /// PRIORITY: what the sender's candidate gets if the receiver learns it from this check (RFC 8445, section 7.1.1).
    public private(set) var priority: UInt32?
    /// USE-CANDIDATE: the sender nominates the pair.
    public private(set) var nominates = false
    public private(set) var role: Role?
    /// How many attributes are neither optional nor known. A request with one is answered with 420.
    public private(set) var unknownAttributes = 0
    /// The beginning of MESSAGE-INTEGRITY.
    private(set) var integrityOffset: Int?
    /// The beginning of FINGERPRINT, which is the last attribute.
    private(set) var fingerprintOffset: Int?

    /// Parses a datagram. Nil if it is not STUN, or if a length in it does not fit.
    ///
    /// Neither FINGERPRINT nor MESSAGE-INTEGRITY is verified: see `hasFingerprint(in:)` and `isSigned(with:in:)`.
    public init?(parsing datagram: Span<UInt8>) {
        guard datagram.count >= Self.headerLength, datagram[0] < 0x40, datagram.uint32(at: 4) == Self.magicCookie,
            Self.headerLength + Int(datagram.uint16(at: 2)) == datagram.count, datagram.count.isMultiple(of: 4)
        else { return nil }
        // The bits of the class lie between those of the method.
        let type = datagram.uint16(at: 0)
        guard let kind = Kind(rawValue: type >> 4 & 1 | type >> 7 & 2) else { return nil }
        self.kind = kind
        method = type & 0xf | type >> 1 & 0x70 | type >> 2 & 0xf80
        transaction = STUNTransaction(high: datagram.uint32(at: 8), low: datagram.uint64(at: 12))
        var offset = Self.headerLength
        while offset < datagram.count {
            guard fingerprintOffset == nil, let value = Self.value(at: offset, in: datagram),
                read(datagram.uint16(at: offset), value, in: datagram)
            else { return nil }
            offset = Self.end(of: value)
        }
    }

    /// The value of the attribute at `offset`, a multiple of four before the datagram's end. Nil if it overruns.
    static func value(at offset: Int, in datagram: Span<UInt8>) -> Range<Int>? {
        let start = offset + 4
        let value = start..<(start + Int(datagram.uint16(at: offset + 2)))
        return end(of: value) <= datagram.count ? value : nil
    }

    /// The end of an attribute with its padding, whose bytes have any value (RFC 8489, section 14).
    static func end(of value: Range<Int>) -> Int { (value.upperBound + 3) & ~3 }

    /// Reads one attribute. Returns false if its length is wrong.
    private mutating func read(_ type: UInt16, _ value: Range<Int>, in datagram: Span<UInt8>) -> Bool {
        if type == STUNAttribute.fingerprint {
            fingerprintOffset = value.lowerBound - 4
            return value.count == 4
        }
        guard integrityOffset == nil else { return true }
        let start = value.lowerBound
        switch type {
        case STUNAttribute.messageIntegrity:
            integrityOffset = start - 4
            return value.count == STUNIntegrity.length
        case STUNAttribute.username:
            username = username ?? value
            return value.count <= 513
        case STUNAttribute.priority:
            guard value.count == 4 else { return false }
            priority = priority ?? datagram.uint32(at: start)
        case STUNAttribute.useCandidate:
            nominates = true
            return value.isEmpty
        case STUNAttribute.iceControlling, STUNAttribute.iceControlled:
            guard value.count == 8, role == nil else { return false }
            let tieBreaker = datagram.uint64(at: start)
            role = type == STUNAttribute.iceControlling ? .controlling(tieBreaker) : .controlled(tieBreaker)
        default:
            if !STUNAttribute.isUnderstood(type) { unknownAttributes += 1 }
        }
        return true
    }
}

extension STUNTransaction {
    /// The XOR between the first half of an IPv6 address and its form in a message (RFC 8489, section 14.2).
    var mask: UInt64 { UInt64(STUNMessage.magicCookie) << 32 | UInt64(high) }
}

extension Span where Element == UInt8 {
    /// The big-endian number at `offset`.
    func uint16(at offset: Int) -> UInt16 { UInt16(self[offset]) << 8 | UInt16(self[offset + 1]) }

    /// The big-endian number at `offset`.
    func uint32(at offset: Int) -> UInt32 { UInt32(uint16(at: offset)) << 16 | UInt32(uint16(at: offset + 2)) }

    /// The big-endian number at `offset`.
    func uint64(at offset: Int) -> UInt64 { UInt64(uint32(at: offset)) << 32 | UInt64(uint32(at: offset + 4)) }
}

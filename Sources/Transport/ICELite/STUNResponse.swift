public import RTP

/// The reason of an error response.
public enum STUNErrorCode: Int, Sendable, CaseIterable {
    /// A required attribute is missing (RFC 8489, section 14.8).
    case badRequest = 400
    /// MESSAGE-INTEGRITY is missing or wrong (RFC 8489, section 9.1.3).
    case unauthenticated = 401
    /// The request has an attribute that this end would have to know (RFC 8489, section 6.3.1). The response lists them.
    case unknownAttribute = 420
    /// Both ends have one role (RFC 8445, section 7.3.1.1).
    case roleConflict = 487
}

/// The answer to a STUN request.
public enum STUNResponse: Sendable, Equatable {
    /// XOR-MAPPED-ADDRESS: where the request came from.
    case success(TransportAddress)
    case error(STUNErrorCode)

    /// Replaces the contents of `packet` with the response. Does not allocate.
    ///
    /// - Parameters:
    ///   - request: The parsed request, of at most `PacketBuffer.capacity` bytes.
    ///   - datagram: The bytes that it was parsed from.
    ///   - key: The key of the request. Nil leaves out MESSAGE-INTEGRITY, for 400 and 401 to an unauthenticated request.
    public func write(
        to request: STUNMessage, in datagram: Span<UInt8>, signedWith key: (some STUNKey)?,
        into packet: inout PacketBuffer
    ) {
        switch self {
        case .success(let address):
            packet.beginSTUN(.success, method: request.method, request.transaction)
            packet.addMappedAddress(address, request.transaction)
        case .error(let code):
            packet.beginSTUN(.error, method: request.method, request.transaction)
            // No reason phrase: the code is its meaning, and the response stays shorter than the request.
            let value = packet.addAttribute(STUNAttribute.errorCode, count: 4)
            packet.setUInt32(UInt32((code.rawValue / 100) << 8 | code.rawValue % 100), at: value)
            if code == .unknownAttribute { packet.addUnknownAttributes(of: request, in: datagram) }
        }
        if let key { packet.addIntegrity(with: key) }
        packet.addFingerprint()
    }
}

/// The parts of a STUN message, in the order in which they are written.
extension PacketBuffer {
    /// Replaces the contents with the header of a message without attributes.
    package mutating func beginSTUN(
        _ kind: STUNMessage.Kind, method: UInt16 = STUNMessage.binding, _ transaction: STUNTransaction
    ) {
        let (kind, method) = (kind.rawValue, method)
        let type = method & 0xf | (method & 0x70) << 1 | (method & 0xf80) << 2 | (kind & 1) << 4 | (kind & 2) << 7
        setUInt16(type, at: 0)
        setUInt16(0, at: 2)
        setUInt32(STUNMessage.magicCookie, at: 4)
        setUInt32(transaction.high, at: 8)
        setUInt64(transaction.low, at: 12)
        count = STUNMessage.headerLength
    }

    /// Adds an attribute with `length` bytes to be written, and the padding. Returns the offset of its value.
    package mutating func addAttribute(_ type: UInt16, count length: Int) -> Int {
        let value = count + 4
        setUInt16(type, at: count)
        setUInt16(UInt16(length), at: count + 2)
        count = STUNMessage.end(of: value..<(value + length))
        for padding in (value + length)..<count { bytes[padding] = 0 }
        setUInt16(UInt16(count - STUNMessage.headerLength), at: 2)
        return value
    }

    package mutating func addIntegrity(with key: some STUNKey) {
        let offset = addAttribute(STUNAttribute.messageIntegrity, count: STUNIntegrity.length)
        let sum = STUNMessage.integrity(of: bytes.span, before: offset - 4, with: key)
        setUInt64(sum.high, at: offset)
        setUInt64(sum.middle, at: offset + 8)
        setUInt32(sum.low, at: offset + 16)
    }

    package mutating func addFingerprint() {
        let offset = addAttribute(STUNAttribute.fingerprint, count: 4)
        setUInt32(STUNMessage.fingerprint(of: bytes.span, before: offset - 4), at: offset)
    }

    package mutating func addMappedAddress(_ address: TransportAddress, _ transaction: STUNTransaction) {
        let value = addAttribute(STUNAttribute.xorMappedAddress, count: address.ipv4 == nil ? 20 : 8)
        setUInt16(address.ipv4 == nil ? 2 : 1, at: value)
        setUInt16(address.port ^ UInt16(STUNMessage.magicCookie >> 16), at: value + 2)
        if let ipv4 = address.ipv4 {
            setUInt32(ipv4 ^ STUNMessage.magicCookie, at: value + 4)
        } else {
            setUInt64(address.high ^ transaction.mask, at: value + 4)
            setUInt64(address.low ^ transaction.low, at: value + 12)
        }
    }

    /// Adds the types that make a request fail with 420 (RFC 8489, section 14.13).
    fileprivate mutating func addUnknownAttributes(of request: STUNMessage, in datagram: Span<UInt8>) {
        var place = addAttribute(STUNAttribute.unknownAttributes, count: 2 * request.unknownAttributes)
        let end = request.integrityOffset ?? datagram.count
        var offset = STUNMessage.headerLength
        while offset < end, let value = STUNMessage.value(at: offset, in: datagram) {
            let type = datagram.uint16(at: offset)
            offset = STUNMessage.end(of: value)
            guard !STUNAttribute.isUnderstood(type) else { continue }
            setUInt16(type, at: place)
            place += 2
        }
    }
}

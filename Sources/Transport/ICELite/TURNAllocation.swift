internal import RTP

/// The messages with which a client asks a TURN server for a relayed address (RFC 8656, section 7).
package enum TURN {
    package static let allocate: UInt16 = 3
    package static let refresh: UInt16 = 4

    /// The longest realm, nonce and user in bytes, so that a request with all three fits into a packet.
    package static let textLimit = 512

    private static let lifetime: UInt16 = 0x000d
    private static let realm: UInt16 = 0x0014
    private static let nonce: UInt16 = 0x0015
    private static let relayedAddress: UInt16 = 0x0016
    private static let requestedTransport: UInt16 = 0x0019

    /// The realm and nonce of a server's first refusal, for the requests that follow (RFC 8489, section 9.2).
    package struct Challenge: Sendable, Equatable {
        package let realm: [UInt8]
        package let nonce: [UInt8]
    }

    /// The response to a request.
    package enum Response: Sendable, Equatable {
        case allocated(TransportAddress)
        /// A success without an address, as for `refresh`.
        case done
        /// An error, with a challenge if it wants credentials.
        case refused(code: Int, Challenge?)
    }

    /// A request for a relayed UDP address.
    ///
    /// - Parameter credentials: the user, the challenge, and the key of the three. Nil for the first request.
    package static func allocate<Key: STUNKey>(
        _ transaction: STUNTransaction, _ credentials: (user: [UInt8], challenge: Challenge, key: Key)?
    ) -> [UInt8] {
        request(allocate, transaction, credentials) { packet in
            let value = packet.addAttribute(requestedTransport, count: 4)
            packet.setUInt32(17 << 24, at: value)
        }
    }

    /// A request that ends an allocation.
    package static func release<Key: STUNKey>(
        _ transaction: STUNTransaction, _ credentials: (user: [UInt8], challenge: Challenge, key: Key)
    ) -> [UInt8] {
        request(refresh, transaction, credentials) { packet in
            let value = packet.addAttribute(lifetime, count: 4)
            packet.setUInt32(0, at: value)
        }
    }

    private static func request<Key: STUNKey>(
        _ method: UInt16, _ transaction: STUNTransaction,
        _ credentials: (user: [UInt8], challenge: Challenge, key: Key)?, _ fill: (inout PacketBuffer) -> Void
    ) -> [UInt8] {
        var packet = PacketBuffer()
        packet.beginSTUN(.request, method: method, transaction)
        fill(&packet)
        if let credentials {
            for (type, bytes) in [
                (STUNAttribute.username, credentials.user), (realm, credentials.challenge.realm),
                (nonce, credentials.challenge.nonce),
            ] {
                let value = packet.addAttribute(type, count: bytes.count)
                for (index, byte) in bytes.enumerated() { packet.bytes[value + index] = byte }
            }
            packet.addIntegrity(with: credentials.key)
        }
        return Array(packet.bytes[..<packet.count])
    }

    /// Reads the response to the request with this transaction, or to any if it is nil. Nil for any other message.
    package static func response(
        _ datagram: [UInt8], to transaction: STUNTransaction?, method: UInt16
    ) -> Response? {
        let bytes = datagram.span
        guard let message = STUNMessage(parsing: bytes), message.method == method,
            transaction == nil || message.transaction == transaction
        else { return nil }
        switch message.kind {
        case .success:
            guard let value = message.value(of: relayedAddress, in: bytes) else { return .done }
            return message.address(at: value, in: bytes).map { .allocated($0) }
        case .error:
            guard let error = message.value(of: STUNAttribute.errorCode, in: bytes), error.count >= 4 else {
                return nil
            }
            let code = Int(bytes[error.lowerBound + 2] & 7) * 100 + Int(bytes[error.lowerBound + 3])
            guard let realm = message.value(of: realm, in: bytes), let nonce = message.value(of: nonce, in: bytes),
                realm.count <= textLimit, nonce.count <= textLimit
            else { return .refused(code: code, nil) }
            return .refused(
                code: code, Challenge(realm: Array(datagram[realm]), nonce: Array(datagram[nonce])))
        case .request, .indication: return nil
        }
    }
}

extension STUNMessage {
    /// The value of the first attribute with this type.
    fileprivate func value(of type: UInt16, in datagram: Span<UInt8>) -> Range<Int>? {
        var offset = Self.headerLength
        while offset < datagram.count, let value = Self.value(at: offset, in: datagram) {
            if datagram.uint16(at: offset) == type { return value }
            offset = Self.end(of: value)
        }
        return nil
    }
}

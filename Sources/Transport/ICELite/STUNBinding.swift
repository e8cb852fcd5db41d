internal import RTP

/// A question to a STUN server for the address of this end, without credentials (RFC 8489, section 2).
extension STUNMessage {
    /// A Binding request without attributes.
    package static func bindingRequest(_ transaction: STUNTransaction) -> [UInt8] {
        var packet = PacketBuffer()
        packet.beginSTUN(.request, transaction)
        return Array(packet.bytes[..<packet.count])
    }

    /// XOR-MAPPED-ADDRESS (RFC 8489, section 14.2): the sender of the request as the server saw it. Nil in a message that is
    /// not a success, without the attribute, or with one of another length or family.
    ///
    /// - Parameter datagram: The bytes that the message was parsed from.
    package func mappedAddress(in datagram: Span<UInt8>) -> TransportAddress? {
        guard kind == .success, method == Self.binding else { return nil }
        var offset = Self.headerLength
        while offset < datagram.count, let value = Self.value(at: offset, in: datagram) {
            if datagram.uint16(at: offset) == STUNAttribute.xorMappedAddress {
                return address(at: value, in: datagram)
            }
            offset = Self.end(of: value)
        }
        return nil
    }

    func address(at value: Range<Int>, in datagram: Span<UInt8>) -> TransportAddress? {
        guard value.count >= 4 else { return nil }
        let port = datagram.uint16(at: value.lowerBound + 2) ^ UInt16(Self.magicCookie >> 16)
        let start = value.lowerBound + 4
        // The byte before the family is to be ignored.
        switch (datagram[value.lowerBound + 1], value.count) {
        case (1, 8): return TransportAddress(ipv4: datagram.uint32(at: start) ^ Self.magicCookie, port: port)
        case (2, 20):
            return TransportAddress(
                ipv6: datagram.uint64(at: start) ^ transaction.mask,
                datagram.uint64(at: start + 8) ^ transaction.low, port: port)
        default: return nil
        }
    }
}

/// An IP address, a port and a transport protocol, as a value without a String or an allocation.
///
/// IPv4 is kept as IPv4-mapped IPv6 (RFC 4291, section 2.5.5.2). An IPv4 peer of a dual-stack socket is therefore equal to
/// the same peer of an IPv4 socket. An address has no zone, so it does not tell link-local addresses of two interfaces
/// apart.
public struct TransportAddress: Hashable, Sendable {
    /// The protocol that carries the datagrams. Over TCP, each has a frame (RFC 4571), which the socket's owner removes.
    public enum Transport: UInt8, Sendable {
        case udp
        case tcp
    }

    /// The first eight bytes of the IPv6 address, big-endian.
    public let high: UInt64
    /// The last eight bytes of the IPv6 address, big-endian.
    public let low: UInt64
    public let port: UInt16
    public let transport: Transport

    /// - Parameters:
    ///   - ipv4: The four bytes, big-endian: 127.0.0.1 is 0x7f000001.
    public init(ipv4: UInt32, port: UInt16, transport: Transport = .udp) {
        self.init(ipv6: 0, 0xffff_0000_0000 | UInt64(ipv4), port: port, transport: transport)
    }

    /// - Parameters:
    ///   - high: The first eight bytes, big-endian.
    ///   - low: The last eight bytes, big-endian.
    public init(ipv6 high: UInt64, _ low: UInt64, port: UInt16, transport: Transport = .udp) {
        self.high = high
        self.low = low
        self.port = port
        self.transport = transport
    }

    /// The four bytes of an IPv4 address, big-endian. Nil for IPv6.
    public var ipv4: UInt32? { high == 0 && low >> 32 == 0xffff ? UInt32(truncatingIfNeeded: low) : nil }
}

extension TransportAddress: CustomStringConvertible {
    /// The address without its port, IPv6 in the form of RFC 5952, section 4.
    public var host: String {
        if let ipv4 { return [24, 16, 8, 0].map { String(ipv4 >> $0 & 0xff) }.joined(separator: ".") }
        let groups = [high, low].flatMap { half in [48, 32, 16, 0].map { half >> $0 & 0xffff } }
        var zeros = 0..<0
        for start in groups.indices {
            let end = groups[start...].firstIndex { $0 != 0 } ?? groups.endIndex
            if end - start > max(1, zeros.count) { zeros = start..<end }
        }
        func text(_ part: ArraySlice<UInt64>) -> String {
            part.map { String($0, radix: 16) }.joined(separator: ":")
        }
        return zeros.isEmpty
            ? text(groups[...]) : text(groups[..<zeros.lowerBound]) + "::" + text(groups[zeros.upperBound...])
    }

    /// `192.0.2.1:5000` or `[2001:db8::1]:5000`, for logs.
    public var description: String { ipv4 == nil ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// The two addresses of a path: the peer's, as this end sees it, and the one on which its datagrams arrive.
///
/// A session is found by both. Behind one address translator, one remote address can lead to different peers from two
/// local addresses (RFC 4787, section 4.1).
public struct AddressPair: Hashable, Sendable {
    public let remote: TransportAddress
    public let local: TransportAddress

    public init(remote: TransportAddress, local: TransportAddress) {
        self.remote = remote
        self.local = local
    }
}

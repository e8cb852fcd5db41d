internal import Glibc

/// The reach of an address, which decides whether an end may send checks to it.
///
/// A description comes from a stranger. It must not direct this end at services of its own machine or network that the
/// stranger cannot reach, such as a cloud's metadata at 169.254.169.254 (RFC 8445, section 19.5.1).
enum AddressScope: Hashable {
    case loopback(IPVersion)
    /// 169.254/16 (RFC 3927), fe80::/10.
    case linkLocal(IPVersion)
    /// RFC 1918, 100.64/10 of carriers and overlay networks (RFC 6598), 192.0.0/24 (RFC 6890), 198.18/15 (RFC 2544), fc00::/7.
    case local(IPVersion)
    case global
    /// Not a host's address: unspecified, multicast, broadcast, or IPv6 that leads to IPv4 which is not public.
    case unusable

    enum IPVersion {
        case four
        case six
    }

    /// Nil if the text is not a literal address.
    init?(_ text: String) {
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self = Self.scope(ofFour: UInt32(bigEndian: four.s_addr))
            return
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        self = withUnsafeBytes(of: six) { Self.scope(ofSix: Array($0)) }
    }

    /// The address in the form of RFC 5952. Nil if the text is not a literal address.
    static func canonical(_ text: String) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        var address = in6_addr()
        let family = text.contains(":") ? AF_INET6 : AF_INET
        guard inet_pton(family, text, &address) == 1,
            inet_ntop(family, &address, &buffer, socklen_t(buffer.count)) != nil
        else { return nil }
        return buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } }
    }

    private static func scope(ofFour address: UInt32) -> AddressScope {
        switch address >> 24 {
        case 0, 224...: return .unusable
        case 127: return .loopback(.four)
        case 10: return .local(.four)
        default: break
        }
        switch address >> 16 {
        case 169 << 8 | 254: return .linkLocal(.four)
        case 192 << 8 where address >> 8 & 0xff == 0: return .local(.four)
        case 198 << 8 | 18, 198 << 8 | 19: return .local(.four)
        case 192 << 8 | 168, (172 << 8 | 16)...(172 << 8 | 31), (100 << 8 | 64)...(100 << 8 | 127): return .local(.four)
        default: return .global
        }
    }

    private static func scope(ofSix address: [UInt8]) -> AddressScope {
        if address.dropLast().allSatisfy({ $0 == 0 }) { return address.last == 1 ? .loopback(.six) : .unusable }
        // ::/96, ::ffff:0:0/96 and ::ffff:0:0:0/96 (RFC 7915) wrap IPv4.
        if address[..<8].allSatisfy({ $0 == 0 }) { return .unusable }
        // Translators of the network (RFC 6052, RFC 8215) and 6to4 (RFC 3056) lead to IPv4.
        switch Array(address[..<6]) {
        case [0, 0x64, 0xff, 0x9b, 0, 0]: return wrapping(address[12...])
        case [0, 0x64, 0xff, 0x9b, 0, 1]: return .unusable
        case let six where six[0] == 0x20 && six[1] == 0x02: return wrapping(address[2..<6])
        default: break
        }
        switch address[0] {
        case 0xff: return .unusable
        case 0xfc, 0xfd: return .local(.six)
        case 0xfe where address[1] & 0xc0 == 0x80: return .linkLocal(.six)
        // Site-local (RFC 3879).
        case 0xfe where address[1] & 0xc0 == 0xc0: return .unusable
        default: return .global
        }
    }

    /// The scope of IPv6 that leads to this IPv4.
    private static func wrapping(_ four: ArraySlice<UInt8>) -> AddressScope {
        scope(ofFour: four.reduce(0) { $0 << 8 | UInt32($1) }) == .global ? .global : .unusable
    }

    /// Whether an end with addresses of these scopes may send checks to an address of this one: to public addresses
    /// always, to others only from within their scope.
    func isOpen(to own: Set<AddressScope>) -> Bool {
        switch self {
        case .global: true
        case .unusable: false
        case .loopback, .linkLocal, .local: own.contains(self)
        }
    }
}

internal import Glibc

/// The origin of a connection, as limits count it: an IPv4 address, or the /64 network of an IPv6 address, because one
/// customer has all addresses of it.
struct ClientAddress: Hashable, Sendable {
    private enum Place: Hashable {
        case loopback
        case four(UInt32)
        case six([UInt16])
        case unknown
    }

    private let place: Place

    /// - Parameter text: a literal address; nil if the connection has none any longer.
    init(_ text: String?) {
        place = text.map(Self.place) ?? .unknown
    }

    /// 127.0.0.0/8 or ::1. No limit of one address holds for it, because a proxy on this machine brings everyone.
    var isLoopback: Bool { place == .loopback }

    private static func place(of text: String) -> Place {
        var four = in_addr()
        let mapped = "::ffff:"
        if inet_pton(AF_INET, text.hasPrefix(mapped) ? String(text.dropFirst(mapped.count)) : text, &four) == 1 {
            let address = UInt32(bigEndian: four.s_addr)
            return address >> 24 == 127 ? .loopback : .four(address)
        }
        var six = in6_addr()
        // A link-local address names its interface after a '%'.
        guard inet_pton(AF_INET6, String(text.prefix { $0 != "%" }), &six) == 1 else { return .unknown }
        let words = six.__in6_u.__u6_addr16
        let network = [words.0, words.1, words.2, words.3]
        let isLoopback = (network + [words.4, words.5, words.6]).allSatisfy { $0 == 0 } && words.7.bigEndian == 1
        return isLoopback ? .loopback : .six(network)
    }
}

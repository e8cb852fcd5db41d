internal import Glibc
internal import NIOHTTP1

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

    /// The client of a request: the peer or, if a proxy on this machine is the peer, the client that the proxy names in
    /// `X-Forwarded-For`. The proxy appends the address that it sees; everything before it is the client's own claim.
    init(of peer: ClientAddress, _ headers: HTTPHeaders) {
        guard peer.isLoopback, let chain = headers[canonicalForm: "x-forwarded-for"].last else {
            self = peer
            return
        }
        let forwarded = ClientAddress(String(chain))
        // Another proxy on this machine, whose clients share one limit.
        self = forwarded.isLoopback ? ClientAddress(nil) : forwarded
    }

    /// 127.0.0.0/8 or ::1. No limit of one address holds for it: programs on this machine could bring the server down in
    /// other ways, and a proxy that names no clients brings everyone.
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

extension ClientAddress: CustomStringConvertible {
    var description: String {
        switch place {
        case .loopback: "loopback"
        case .four(let address): [24, 16, 8, 0].map { "\(address >> $0 & 255)" }.joined(separator: ".")
        case .six(let network): network.map { String($0.bigEndian, radix: 16) }.joined(separator: ":") + "::/64"
        case .unknown: "unknown"
        }
    }
}

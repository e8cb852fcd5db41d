internal import NIOCore
internal import PeerIO
internal import PeerLoop

extension RoomServer {
    /// The addresses at which other machines may reach this one: up, and neither loopback nor IPv6 link-local. IPv4 comes
    /// first.
    package static func machineAddresses(withIPv6: Bool) -> [String] {
        let all = ((try? System.enumerateDevices()) ?? []).compactMap(\.address).filter { !$0.isLoopback }
        let four = all.filter { $0.protocol == .inet }.compactMap(\.ipAddress)
        guard withIPv6 else { return four }
        let six = all.filter { $0.protocol == .inet6 }.compactMap(\.ipAddress)
        return four + six.filter { !$0.lowercased().hasPrefix("fe80") }
    }

    /// Whether a literal address is this machine's loopback.
    package static func isLoopback(_ address: String) -> Bool { ClientAddress(address).isLoopback }

    /// Whether a text is a literal IPv4 or IPv6 address that another machine may reach.
    package static func isReachableAddress(_ text: String) -> Bool { MediaPort.isReachableAddress(text) }

    /// A literal address in its usual form. Nil for other texts.
    package static func canonicalAddress(_ text: String) -> String? { MediaPort.canonicalAddress(text) }
}

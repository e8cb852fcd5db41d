internal import NIOCore
internal import PeerIO
internal import PeerLoop

extension RoomServer {
    /// The addresses at which other machines may reach this one: IPv4, up, and not loopback.
    package static func machineAddresses() -> [String] {
        let devices = (try? System.enumerateDevices()) ?? []
        return devices.compactMap(\.address).filter { $0.protocol == .inet && !$0.isLoopback }.compactMap(\.ipAddress)
    }

    /// Whether a text is a literal IPv4 or IPv6 address.
    package static func isAddress(_ text: String) -> Bool { MediaPort.isAddress(text) }
}

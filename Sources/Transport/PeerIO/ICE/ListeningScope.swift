internal import CGLib
internal import CNice
package import PeerLoop

/// The addresses of this machine on which a peer listens.
package enum ListeningScope: Sendable, Hashable {
    /// Only 127.0.0.1: nothing outside of this machine reaches the peer.
    case loopback
    /// Every address of the machine, and 127.0.0.1. Only for a peer on this machine: another one could direct checks at
    /// the machine's own services.
    case any
    /// Like `any`, but loopback candidates of the peer are not tried: for a peer that may be on this machine or not. If it
    /// is, its own checks over loopback reveal its address.
    case anyTryingNoLoopback
    /// Every address of the machine except loopback, for a peer on another machine.
    case anyButLoopback
    /// These literal addresses.
    case addresses([String])

    /// The scope that reaches a machine at this literal address: loopback if it is this machine's loopback.
    package static func reaching(_ address: String?) -> ListeningScope {
        guard let address, case .loopback = AddressScope(address) else { return .anyButLoopback }
        // A server at ::1 may have its media at 127.0.0.1, or the reverse.
        return address.contains(":") ? .addresses(["127.0.0.1", "::1"]) : .loopback
    }

    /// The scope that reaches a machine at this literal address, and these servers. A relay may be elsewhere than a machine
    /// that is this one.
    package static func reaching(_ address: String?, and servers: ICEServers) -> ListeningScope {
        let scope = reaching(address)
        guard scope != .anyButLoopback, servers.servers.contains(where: { !scope.addresses.contains($0.host) }) else {
            return scope
        }
        return scope == .loopback ? .any : .addresses(scope.addresses + machineAddresses())
    }

    /// The literal addresses.
    var addresses: [String] {
        switch self {
        case .loopback: ["127.0.0.1"]
        case .any, .anyTryingNoLoopback: ["127.0.0.1"] + Self.machineAddresses()
        case .anyButLoopback: Self.machineAddresses()
        case .addresses(let list): list
        }
    }

    /// The machine's addresses, without loopback and without IPv6 link-local ones, which are meaningless without the
    /// name of an interface.
    private static func machineAddresses() -> [String] {
        let list = nice_interfaces_get_local_ips(0)
        defer { g_list_free_full(list, g_free) }
        var found: [String] = []
        var item = list
        while let node = item {
            if let data = node.pointee.data {
                let text = String(cString: data.assumingMemoryBound(to: CChar.self))
                if !text.lowercased().hasPrefix("fe80"), !found.contains(text) { found.append(text) }
            }
            item = node.pointee.next
        }
        return found
    }
}

internal import PeerLoop
internal import RTP
internal import RoomProtocol

extension ICEServers {
    /// The usable servers of a room server's list, as far as the limit on them. Later versions may name other kinds.
    ///
    /// - Parameters:
    ///   - end: the literal address of the room server, which limits where its servers may be.
    ///   - authorities: a PEM file with the authorities of the servers' certificates. Nil means those of the system.
    init(_ list: [ICEServerInfo], namedByEndAt end: String?, policy: ICEPolicy, authorities: String? = nil) {
        self.init(policy: policy)
        for info in list {
            for url in info.urls where servers.count < ICEServerInfo.urlLimit {
                let server = try? ICEServer(
                    url: url, username: info.username ?? "", credential: info.credential ?? "")
                guard var server else { continue }
                server.origin = .named(byEndAt: end)
                server.authorities = authorities
                servers.append(server)
            }
        }
    }
}

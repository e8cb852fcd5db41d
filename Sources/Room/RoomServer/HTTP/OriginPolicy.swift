internal import NIOHTTP1
internal import RoomProtocol
internal import ServerCore

/// Which web pages may use this server.
///
/// A page of another origin must not reach a server on loopback through its visitor's browser. Its `Origin` differs,
/// or, after DNS rebinding, the `Host` is not one of ours.
struct OriginPolicy: Sendable {
    /// Whether the server listens on loopback only.
    var isLoopbackOnly: Bool
    /// Whether pages beyond loopback get tokens (`--open`).
    var isOpen: Bool
    /// Whether the server's own connections use TLS.
    var isEncrypted = false

    /// Throws unless the request comes from a page of this server. Clients other than browsers send no `Origin`.
    func checkOrigin(_ headers: HTTPHeaders, peerIsLoopback: Bool) throws(RoomError) {
        let host = headers.first(name: "host") ?? ""
        guard !isLoopbackOnly || Self.isLoopbackName(hostName(headers)) else {
            throw RoomError(
                .forbidden,
                "The server listens on loopback, so it admits pages of its own machine only, by 127.0.0.1, [::1] or "
                    + "localhost and not by '\(host.prefix(100))'. Its administrator can let it listen on an address that "
                    + "other machines reach.")
        }
        guard let origin = headers.first(name: "origin") else { return }
        // A page of another origin cannot set this header without our consent (CORS). Beside an Origin that differs from
        // Host, it comes from a proxy on this machine.
        let hosts = [host] + (peerIsLoopback ? headers["x-forwarded-host"] : [])
        // Behind a TLS proxy, the page is https and our connection is not.
        let schemes = isEncrypted ? ["https"] : ["http", "https"]
        let own = hosts.filter { !$0.isEmpty }.flatMap { host in schemes.map { "\($0)://\(host)" } }
        guard own.contains(where: { $0.lowercased() == origin.lowercased() }) else {
            throw RoomError(
                .forbidden,
                "The page's address '\(origin.prefix(100))' is not the server's, which is '\(host.prefix(100))' by this "
                    + "request. Only pages of the server may connect; a proxy has to forward the Host header.")
        }
    }

    func admitsOrigin(_ headers: HTTPHeaders, _ peer: ClientAddress) -> Bool {
        (try? checkOrigin(headers, peerIsLoopback: peer.isLoopback)) != nil
    }

    /// Throws unless a page of this server may get a token without a secret.
    func checkPageToken(_ headers: HTTPHeaders, peerIsLoopback: Bool) throws(RoomError) {
        try checkOrigin(headers, peerIsLoopback: peerIsLoopback)
        if let site = headers.first(name: "sec-fetch-site"), site != "same-origin", site != "none" {
            throw RoomError(.forbidden, "Only pages of this server get tokens. Open its own page.")
        }
        guard !isOpen, !isLocal(headers, peerIsLoopback: peerIsLoopback) else { return }
        throw RoomError(
            .forbidden,
            "This server issues tokens to its page only on its own machine. Start it with --open to let browsers "
                + "on other machines join"
                + (isLoopbackOnly ? ", and with --listen and an address that other machines reach." : "."))
    }

    /// Whether the client runs on this machine.
    func isLocal(_ headers: HTTPHeaders, peerIsLoopback: Bool) -> Bool {
        place(of: headers, peerIsLoopback: peerIsLoopback) == .here
    }

    /// Through a proxy here, everyone's peer is loopback; but a proxy passes on the public host name, or names the client
    /// that it forwards (RFC 7239).
    func place(of headers: HTTPHeaders, peerIsLoopback: Bool) -> ClientPlace {
        let isForwarded = ["forwarded", "x-forwarded-for", "x-forwarded-host", "via"].contains {
            headers.contains(name: $0)
        }
        guard peerIsLoopback, !isForwarded else { return .elsewhere }
        return Self.isLoopbackName(hostName(headers)) ? .here : .unknown
    }

    private func hostName(_ headers: HTTPHeaders) -> String {
        let host = headers.first(name: "host") ?? ""
        if host.hasPrefix("[") { return String(host.prefix { $0 != "]" }) + "]" }
        return String(host.prefix { $0 != ":" })
    }

    private static func isLoopbackName(_ name: String) -> Bool {
        if ["localhost", "[::1]"].contains(name.lowercased()) { return true }
        // An address of 127.0.0.0/8, not a name that begins like one.
        let parts = name.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return parts.count == 4 && parts[0] == 127 && !parts.contains(nil)
    }
}

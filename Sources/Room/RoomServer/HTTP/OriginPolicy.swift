internal import NIOHTTP1
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

    /// Whether the request comes from a page of this server. Clients other than browsers send no `Origin`.
    func admitsOrigin(_ headers: HTTPHeaders) -> Bool {
        guard hasAcceptableHost(headers) else { return false }
        guard let origin = headers.first(name: "origin") else { return true }
        guard let host = headers.first(name: "host") else { return false }
        // Behind a TLS proxy, the page is https and our connection is not.
        return ["http://", "https://"].contains { origin.lowercased() == $0 + host.lowercased() }
    }

    /// Whether a page of this server may get a token without a secret.
    func admitsPageToken(_ headers: HTTPHeaders, peerIsLoopback: Bool) -> Bool {
        guard admitsOrigin(headers) else { return false }
        if let site = headers.first(name: "sec-fetch-site"), site != "same-origin", site != "none" { return false }
        return isOpen || isLocal(headers, peerIsLoopback: peerIsLoopback)
    }

    /// Whether the client runs on this machine.
    func isLocal(_ headers: HTTPHeaders, peerIsLoopback: Bool) -> Bool {
        place(of: headers, peerIsLoopback: peerIsLoopback) == .here
    }

    /// Through a proxy here, everyone's peer is loopback; but a proxy passes on the public host name, or names the client
    /// that it forwards (RFC 7239).
    func place(of headers: HTTPHeaders, peerIsLoopback: Bool) -> ClientPlace {
        let isForwarded = ["forwarded", "x-forwarded-for", "via"].contains { headers.contains(name: $0) }
        guard peerIsLoopback, !isForwarded else { return .elsewhere }
        return Self.isLoopbackName(hostName(headers)) ? .here : .unknown
    }

    private func hasAcceptableHost(_ headers: HTTPHeaders) -> Bool {
        !isLoopbackOnly || Self.isLoopbackName(hostName(headers))
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

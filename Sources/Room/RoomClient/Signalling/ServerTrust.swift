/// Which certificates of a server with TLS a client accepts.
package enum ServerTrust: Sendable, Hashable {
    /// Those for the server's name, of an authority that the system knows.
    case system
    /// Those for the server's name, of an authority in this PEM file.
    case authorities(String)
    /// The one in the server file at this path alone, whatever its names. Read for each connection, because a server that
    /// gets another certificate writes it there.
    case serverFile(String)

    /// The PEM file with authorities of room servers, for callers that name none.
    package static let variable = "CONNECTLIVE_CA"

    /// The trust that the caller or the environment chooses. Nil if neither does.
    static func chosen(_ authorities: String?, _ environment: [String: String]) -> ServerTrust? {
        [authorities, environment[variable]].compactMap(\.self).first { !$0.isEmpty }.map { .authorities($0) }
    }
}

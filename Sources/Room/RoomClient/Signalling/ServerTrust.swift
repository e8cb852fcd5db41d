internal import Synchronization

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

    /// The trust in the authorities of a file. Nil without a file; empty text means the same as nil.
    static func of(authorities path: String?) -> ServerTrust? {
        path.flatMap { $0.isEmpty ? nil : .authorities($0) }
    }
}

/// The authorities that an application chooses for its sign-ins and for the nodes of its graphs.
package enum ApplicationAuthorities {
    private static let chosen = Mutex<String?>(nil)

    /// A PEM file. Nil if the application names none. Usable on any thread.
    package static var path: String? {
        get { chosen.withLock { $0 } }
        set { chosen.withLock { $0 = newValue } }
    }
}

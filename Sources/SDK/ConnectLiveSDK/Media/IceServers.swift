/// STUN and TURN servers with one user and password, as `RTCIceServer` of browsers. (Linux)
public struct IceServer: Sendable, Hashable, Codable {
    /// `stun:HOST:PORT`, `turn:HOST:PORT?transport=udp`, `turn:HOST:PORT?transport=tcp` or `turns:HOST:PORT`.
    public var urls: [String]
    /// The user of the TURN servers. Empty for STUN servers.
    public var username: String
    /// The password of the user. Empty for STUN servers.
    public var credential: String
    /// A PEM file with the authorities that sign the certificates of `turns` servers. Nil means those of the system.
    public var certificateAuthorities: String?

    /// Servers with one user and password. A room checks them when it connects.
    public init(
        urls: [String], username: String = "", credential: String = "", certificateAuthorities: String? = nil
    ) {
        self.urls = urls
        self.username = username
        self.credential = credential
        self.certificateAuthorities = certificateAuthorities
    }

    /// Servers with one user and password.
    ///
    /// - Parameter name: the `username`.
    public init(urls: [String], name: String, credential: String) {
        self.init(urls: urls, username: name, credential: credential)
    }

    /// Reads an `RTCIceServer`, whose members are optional except `urls`.
    ///
    /// - Throws: a `DecodingError` for another form.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            urls: try members.decode([String].self, forKey: .urls),
            username: try members.decodeIfPresent(String.self, forKey: .username) ?? "",
            credential: try members.decodeIfPresent(String.self, forKey: .credential) ?? "",
            certificateAuthorities: try members.decodeIfPresent(String.self, forKey: .certificateAuthorities))
    }
}

/// The ways that media may take. (Linux)
public enum IceTransportPolicy: String, Sendable, Hashable {
    /// The best one that works.
    case all
    /// Only through a TURN server, which hides the addresses of this machine from the room's server.
    case relay
}

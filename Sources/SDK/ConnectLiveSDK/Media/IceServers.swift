/// STUN and TURN servers with one user and password, as `RTCIceServer` of browsers.
public struct IceServer: Sendable, Hashable, Codable {
    /// `stun:HOST:PORT`, `turn:HOST:PORT?transport=udp`, `turn:HOST:PORT?transport=tcp` or `turns:HOST:PORT`.
    public var urls: [String]
    /// The user of the TURN servers. Empty for STUN servers.
    public var name: String
    /// The password of the user. Empty for STUN servers.
    public var credential: String
    /// A PEM file with the authorities that sign the certificates of `turns` servers. Nil means those of the system. (Linux)
    public var certificateAuthorities: String?

    /// Servers with one user and password. A room checks them when it connects.
    public init(urls: [String], name: String = "", credential: String = "", certificateAuthorities: String? = nil) {
        self.urls = urls
        self.name = name
        self.credential = credential
        self.certificateAuthorities = certificateAuthorities
    }

    private enum BrowserKeys: String, CodingKey { case username }

    /// Reads an `RTCIceServer` too, whose members are optional except `urls`, and which has a `username`.
    ///
    /// - Throws: a `DecodingError` for another form.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let name = try members.decodeIfPresent(String.self, forKey: .name)
        let user = try decoder.container(keyedBy: BrowserKeys.self).decodeIfPresent(String.self, forKey: .username)
        self.init(
            urls: try members.decode([String].self, forKey: .urls), name: name ?? user ?? "",
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

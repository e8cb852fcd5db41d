package import RTP

/// A STUN or TURN server with one transport (RFC 8489, RFC 8656).
package struct ICEServer: Sendable, Hashable {
    /// The way to a TURN server. The relay itself sends UDP in any case.
    package enum Transport: String, Sendable, CaseIterable {
        case udp = "UDP"
        case tcp = "TCP"
        case tls = "TLS"
    }

    package enum Kind: Sendable, Hashable {
        case stun
        case turn(Transport)
    }

    /// The most servers of one connection.
    package static let limit = 8
    /// Longer URLs, names and passwords are refused.
    package static let maximumLength = 512

    /// As it was given, without a name and password.
    package let url: String
    package let kind: Kind
    /// A name, or a literal address without brackets.
    package let host: String
    package let port: UInt16
    /// The user and password of TURN (RFC 8489, section 9.2).
    package var username = ""
    package var credential = ""
    /// A PEM file with the authorities that sign the server's certificate. Nil means those of the system.
    package var authorities: String?
    package var origin = Origin.configured

    /// The end that named the server.
    package enum Origin: Sendable, Hashable {
        /// This end's user, who may name any server.
        case configured
        /// The other end, whose signalling is at this literal address. Nil if it is unknown.
        case named(byEndAt: String?)
    }

    /// Reads a URL: `stun:host:port`, `turn:host:port?transport=udp|tcp` or `turns:host:port` (RFC 7064, RFC 7065).
    ///
    /// The port may be left out: 3478, or 5349 for `turns`. Throws `transport.ice-server` for anything else.
    package init(url: String, username: String = "", credential: String = "") throws(TransportError) {
        func refusal(_ reason: String) -> TransportError {
            TransportError(
                code: "transport.ice-server",
                message:
                    "The ICE server \"\(url.prefix(80).filter { !$0.isNewline })\" cannot be used: \(reason). Write "
                    + "turn:HOST:PORT?transport=udp, turn:HOST:PORT?transport=tcp, turns:HOST:PORT or stun:HOST:PORT.")
        }
        guard url.utf8.count <= Self.maximumLength, username.utf8.count <= Self.maximumLength,
            credential.utf8.count <= Self.maximumLength
        else { throw refusal("it is longer than \(Self.maximumLength) bytes") }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else { throw refusal("it has spaces or controls") }
        guard let colon = url.firstIndex(of: ":") else { throw refusal("it has no scheme") }
        let scheme = url[..<colon].lowercased()
        let rest = url[url.index(after: colon)...].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let transport = rest.count > 1 ? rest[1].lowercased() : nil
        guard ["stun", "turn", "turns"].contains(scheme) else { throw refusal("its scheme is not stun, turn or turns") }
        switch (scheme, transport) {
        case ("stun", nil): kind = .stun
        case ("turn", nil), ("turn", "transport=udp"): kind = .turn(.udp)
        case ("turn", "transport=tcp"): kind = .turn(.tcp)
        case ("turns", nil), ("turns", "transport=tcp"): kind = .turn(.tls)
        default: throw refusal("it has no transport that this end supports")
        }
        guard let (host, port) = Self.place(rest[0]) else { throw refusal("it has no host, or an unusable port") }
        self.url = url
        self.host = host
        self.port = port ?? (kind == .turn(.tls) ? 5349 : 3478)
        self.username = username
        self.credential = credential
        guard kind == .stun || !username.isEmpty && !credential.isEmpty else {
            throw refusal("a TURN server needs a user and a password")
        }
        // A zero byte would end the text in C.
        guard !username.utf8.contains(0), !credential.utf8.contains(0) else {
            throw refusal("its user has a zero byte")
        }
    }

    /// `host:port`, `host`, or either with an IPv6 address in brackets.
    private static func place(_ text: Substring) -> (host: String, port: UInt16?)? {
        var host = text
        var port: Substring?
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            let after = text[text.index(after: end)...]
            guard after.isEmpty || after.first == ":" else { return nil }
            if !after.isEmpty { port = after.dropFirst() }
        } else if let colon = text.lastIndex(of: ":") {
            host = text[..<colon]
            port = text[text.index(after: colon)...]
            guard !host.contains(":") else { return nil }
        }
        let isName = host.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            case UInt8(ascii: ":"): text.first == "["
            default: false
            }
        }
        guard !host.isEmpty, host.utf8.count <= 253, isName else { return nil }
        guard let port else { return (String(host), nil) }
        guard port.allSatisfy(\.isNumber), let number = UInt16(port), number > 0 else { return nil }
        return (String(host), number)
    }

    /// `HOST:PORT`, for messages.
    package var place: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// The transport of a TURN server. Nil for STUN.
    package var relayTransport: Transport? {
        if case .turn(let transport) = kind { transport } else { nil }
    }
}

/// Which pairs of addresses a peer may use.
package enum ICEPolicy: String, Sendable, CaseIterable {
    /// The best one that works.
    case all
    /// Only those through a TURN server.
    case relay
}

/// The STUN and TURN servers of a connection.
package struct ICEServers: Sendable, Hashable {
    package var servers: [ICEServer] = []
    package var policy = ICEPolicy.all
    /// A PEM file with the authorities of servers that the other end names. Nil means those of the system.
    package var authorities: String?

    package init(_ servers: [ICEServer] = [], policy: ICEPolicy = .all) {
        self.servers = servers
        self.policy = policy
    }
}

/// How the datagrams of a connected peer travel.
package struct MediaRoute: Sendable, Hashable {
    /// The type of a candidate (RFC 8445, section 5.1.1).
    package enum Kind: String, Sendable {
        case host
        case serverReflexive = "srflx"
        case peerReflexive = "prflx"
        case relayed = "relay"
    }

    package var local: Kind
    package var remote: Kind
    /// To the TURN server, or without one to the peer.
    package var transport: ICEServer.Transport
    /// The TURN server, as `HOST:PORT`. Nil without one.
    package var relay: String?

    package init(local: Kind, remote: Kind, transport: ICEServer.Transport = .udp, relay: String? = nil) {
        (self.local, self.remote, self.transport, self.relay) = (local, remote, transport, relay)
    }
}

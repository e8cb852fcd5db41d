/// STUN and TURN servers with their credentials, in the form of `RTCIceServer` (W3C WebRTC, section 4.2.2).
package struct ICEServerInfo: Codable, Sendable, Equatable {
    /// The most URLs of a server's list that a client of ours uses.
    package static let urlLimit = 4

    package var urls: [String]
    package var username: String?
    package var credential: String?

    package init(urls: [String], username: String? = nil, credential: String? = nil) {
        self.urls = urls
        self.username = username
        self.credential = credential
    }

    private enum CodingKeys: String, CodingKey { case urls, username, credential }

    /// `urls` is a list, or one URL.
    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        do {
            urls = try fields.decode([String].self, forKey: .urls)
        } catch {
            urls = [try fields.decode(String.self, forKey: .urls)]
        }
        username = try fields.decodeIfPresent(String.self, forKey: .username)
        credential = try fields.decodeIfPresent(String.self, forKey: .credential)
    }
}

/// Servers whose credentials replace earlier ones before those expire.
package struct ICEServersRenewed: Codable, Sendable, Equatable {
    package var iceServers: [ICEServerInfo]

    package init(iceServers: [ICEServerInfo]) { self.iceServers = iceServers }

    private enum CodingKeys: String, CodingKey { case iceServers }

    package init(from decoder: any Decoder) throws {
        iceServers = try decoder.container(keyedBy: CodingKeys.self).usableServers(forKey: .iceServers) ?? []
    }
}

extension KeyedDecodingContainer {
    /// The servers of a list, without those of a form that this version does not know: a later server may name such ones,
    /// and clients join without them. Nil if there is no list.
    func usableServers(forKey key: Key) throws -> [ICEServerInfo]? {
        guard contains(key), try !decodeNil(forKey: key), var list = try? nestedUnkeyedContainer(forKey: key) else {
            return nil
        }
        var servers: [ICEServerInfo] = []
        while !list.isAtEnd {
            if let server = try list.decode(Entry.self).server { servers.append(server) }
        }
        return servers
    }
}

/// An entry that decodes in any case, so that the next one is reached.
private struct Entry: Decodable {
    let server: ICEServerInfo?

    init(from decoder: any Decoder) { server = try? ICEServerInfo(from: decoder) }
}

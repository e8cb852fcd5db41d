internal import Foundation
internal import PeerIO
internal import PeerLoop
internal import RTP
package import RoomProtocol

/// The STUN and TURN servers that clients are told, with credentials for each access token.
package struct RelayService: Sendable {
    package enum Key: Sendable, Equatable {
        /// The secret of a TURN server that checks credentials which expire: coturn's `static-auth-secret`.
        case secret(String)
        /// One user and password for everybody.
        case fixed(user: String, password: String)
    }

    /// How long credentials last after they were told, in seconds. Half of it passes until new ones follow.
    package static let usualLifetime = 3600

    /// `stun:…`
    package let reflectors: [String]
    /// `turn:…` and `turns:…`
    package let relays: [String]
    private let key: Key?
    private let lifetime: Int

    /// - Parameters:
    ///   - urls: 1 to 4, `stun:…`, `turn:…` or `turns:…`.
    ///   - key: needed with a TURN server.
    ///
    /// Throws `setting.invalid` for anything else.
    package init(urls: [String], key: Key?, lifetime: Int = Self.usualLifetime) throws(RoomError) {
        guard (1...ICEServerInfo.urlLimit).contains(urls.count) else {
            throw RoomError(.settingInvalid, "Name 1 to \(ICEServerInfo.urlLimit) ICE servers, not \(urls.count).")
        }
        var (reflectors, relays): ([String], [String]) = ([], [])
        for url in urls {
            do throws(TransportError) {
                // The user is made for each access token.
                let server = try ICEServer(url: url, username: "user", credential: "password")
                if server.kind == .stun { reflectors.append(url) } else { relays.append(url) }
            } catch {
                throw RoomError(.settingInvalid, error.message)
            }
        }
        guard key != nil || relays.isEmpty else {
            throw RoomError(
                .settingInvalid,
                "The TURN server \(relays[0]) needs a secret, or a user and a password. Set CONNECTLIVE_TURN_SECRET, or "
                    + "CONNECTLIVE_TURN_USER and CONNECTLIVE_TURN_PASSWORD.")
        }
        (self.reflectors, self.relays, self.key, self.lifetime) = (reflectors, relays, key, lifetime)
    }

    /// The seconds after which clients need new credentials. Nil if these do not expire.
    var renewal: Int? {
        if case .secret = key, !relays.isEmpty { lifetime / 2 } else { nil }
    }

    /// The list for participants with an access token. They share one user, so that a TURN server's limit on the allocations
    /// of a user (coturn's `user-quota`) holds for them together.
    ///
    /// - Parameter time: seconds since 1970.
    func servers(for token: String, at time: Int) -> [ICEServerInfo] {
        var list = reflectors.isEmpty ? [] : [ICEServerInfo(urls: reflectors)]
        guard let key, !relays.isEmpty else { return list }
        switch key {
        case .secret(let secret):
            // Not the token, because TURN servers log users. It begins as no user does, whose password is such a sum.
            let sum = RelayCredential.sum(of: "token \(token)", secret: secret)
            let user = "\(time + lifetime):" + sum.prefix(8).map { String(format: "%02x", $0) }.joined()
            let password = Data(RelayCredential.sum(of: user, secret: secret)).base64EncodedString()
            list.append(ICEServerInfo(urls: relays, username: user, credential: password))
        case .fixed(let user, let password):
            list.append(ICEServerInfo(urls: relays, username: user, credential: password))
        }
        return list
    }

    func servers(for token: String) -> [ICEServerInfo] {
        servers(for: token, at: Int(Date().timeIntervalSince1970))
    }
}

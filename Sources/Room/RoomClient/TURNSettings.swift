internal import Foundation
package import PeerLoop
internal import RTP
package import RoomProtocol

/// The STUN and TURN servers that a user names: by a caller's values, then by the environment.
package struct TURNSettings: Sendable {
    /// URLs, each with a comma behind it in one variable.
    package static let urls = "CONNECTLIVE_TURN"
    package static let user = "CONNECTLIVE_TURN_USER"
    package static let password = "CONNECTLIVE_TURN_PASSWORD"
    /// Of a room server alone, which makes users and passwords from it.
    package static let secret = "CONNECTLIVE_TURN_SECRET"
    /// A PEM file with the authorities of the servers' certificates.
    package static let authorities = "CONNECTLIVE_TURN_CA"
    /// `all` or `relay`.
    package static let policy = "CONNECTLIVE_ICE_POLICY"

    package var urls: [String] = []
    package var user: String?
    package var password: String?
    package var authorities: String?
    package var policy: ICEPolicy?
    /// How the caller names a user and a password, for messages.
    package var credentialAdvice = "Set \(TURNSettings.user) and \(TURNSettings.password)"
    private let environment: [String: String]

    package init(environment: [String: String] = ProcessInfo.processInfo.environment) {
        self.environment = environment
    }

    private func value(_ given: String?, _ variable: String) -> String? {
        [given, environment[variable]].compactMap(\.self).first { !$0.isEmpty }
    }

    /// Throws `setting.invalid` for a URL that cannot be used, and for a TURN server without user or password.
    package func servers() throws(RoomError) -> ICEServers {
        let named = environment[Self.urls].map {
            $0.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        let urls = urls.isEmpty ? (named ?? []).filter { !$0.isEmpty } : urls
        guard urls.count <= ICEServer.limit else {
            throw RoomError(.settingInvalid, "\(urls.count) ICE servers are named. Name at most \(ICEServer.limit).")
        }
        let (user, password) = (value(user, Self.user), value(password, Self.password))
        if let url = urls.first(where: { $0.lowercased().hasPrefix("turn") }), user == nil || password == nil {
            throw RoomError(
                .settingInvalid,
                "The TURN server \(url.prefix(80)) is named without \(user == nil ? "a user" : "a password"). "
                    + "\(credentialAdvice).")
        }
        let policy = try effectivePolicy()
        // A caller without servers has authorities for those that the room server names.
        let hasAuthoritiesAlone = urls.isEmpty && authorities != nil
        let file = try authoritiesFile(
            isNeeded: hasAuthoritiesAlone || urls.contains { $0.lowercased().hasPrefix("turns:") })
        var servers: [ICEServer] = []
        for url in urls {
            do throws(TransportError) {
                var server = try ICEServer(url: url, username: user ?? "", credential: password ?? "")
                server.authorities = file
                servers.append(server)
            } catch {
                throw RoomError(.settingInvalid, error.message)
            }
        }
        var all = ICEServers(servers, policy: policy)
        all.authorities = file
        return all
    }

    /// The caller's policy, else that of the environment, else `all`. Throws `setting.invalid` for an unknown one.
    package func effectivePolicy() throws(RoomError) -> ICEPolicy {
        if let policy { return policy }
        guard let text = value(nil, Self.policy) else { return .all }
        guard let policy = ICEPolicy(rawValue: text) else {
            throw RoomError(.settingInvalid, "\(Self.policy) is \"\(text)\". Set it to all or relay.")
        }
        return policy
    }

    /// The absolute path of the file with authorities, because GLib opens no other one.
    private func authoritiesFile(isNeeded: Bool) throws(RoomError) -> String? {
        guard let text = value(authorities, Self.authorities) else { return nil }
        let path = URL(fileURLWithPath: text).path
        guard !isNeeded || FileManager.default.isReadableFile(atPath: path) else {
            throw RoomError(
                .settingInvalid,
                "The file \(path) with the authorities of TURN servers does not exist, or is not readable. Correct its path."
            )
        }
        return path
    }
}

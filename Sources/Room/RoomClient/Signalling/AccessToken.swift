internal import Foundation
package import RoomProtocol

/// A token for the rooms of one service on one server.
package struct AccessToken: Sendable, Equatable {
    package var address: ServerAddress
    /// How the server's certificate is checked.
    package var trust: ServerTrust
    package var token: String

    package init(address: ServerAddress, trust: ServerTrust = .system, token: String) {
        self.address = address
        self.trust = trust
        self.token = token
    }

    /// Exchanges the service's secret for a token. Returns its lifetime in seconds too.
    package static func signIn(
        at location: ServerLocation
    ) async throws(RoomError) -> (token: AccessToken, seconds: Int) {
        let secret = location.serviceSecret ?? ""
        let request = SignInRequest(serviceId: location.serviceId, serviceSecret: secret)
        guard let body = try? JSONEncoder().encode(request) else { preconditionFailure("two strings did not encode") }
        let answer = try await HTTPExchange(.post, Signalling.signInPath, body: String(decoding: body, as: UTF8.self))
            .run(at: location.address, trusting: location.trust)
        guard answer.status == 200 else { throw refusal(answer, at: location.address) }
        guard !answer.body.isEmpty else {
            throw RoomError(
                .httpResponseInvalid,
                "The reply of \(location.address) to the sign-in is empty. Check that it is a room server.", .empty)
        }
        guard let grant = try? JSONDecoder().decode(AccessGrant.self, from: Data(answer.body.utf8)),
            !grant.accessToken.isEmpty
        else { throw unreadable(location.address) }
        return (
            AccessToken(address: location.address, trust: location.trust, token: grant.accessToken), grant.expiresIn
        )
    }

    /// Throws if the server does not accept the token.
    package func check() async throws(RoomError) {
        let answer = try await HTTPExchange(.get, Signalling.signInPath, authorization: "Bearer \(token)").run(
            at: address, trusting: trust)
        try Self.check(answer, at: address)
    }

    /// Takes the token if the server cannot check it: an earlier version, or a proxy that routes only POST there. Rooms check
    /// it too.
    static func check(_ answer: HTTPExchange.Answer, at address: ServerAddress) throws(RoomError) {
        guard !(200..<300).contains(answer.status) else { return }
        let refusal = refusal(answer, at: address)
        guard [404, 405].contains(answer.status), refusal.code == .signInFailed else { throw refusal }
    }

    /// Revokes the token, which removes every participant that joined with it.
    package func signOut() async throws(RoomError) {
        let answer = try await HTTPExchange(.post, Signalling.signOutPath, authorization: "Bearer \(token)").run(
            at: address, trusting: trust)
        guard (200..<300).contains(answer.status) else { throw Self.refusal(answer, at: address) }
    }

    /// The server's error, if it sent one.
    private static func refusal(_ answer: HTTPExchange.Answer, at address: ServerAddress) -> RoomError {
        if let problem = try? JSONDecoder().decode(Problem.self, from: Data(answer.body.utf8)) { return problem.error }
        return RoomError(
            .signInFailed,
            "The server \(address) replied to the sign-in with HTTP status \(answer.status). Check that it is a room "
                + "server.", .status(answer.status, body: answer.body))
    }

    private static func unreadable(_ address: ServerAddress) -> RoomError {
        RoomError(
            .signInResponseUnreadable,
            "The reply of \(address) to the sign-in is malformed. Check that it is a room server of this version.")
    }
}

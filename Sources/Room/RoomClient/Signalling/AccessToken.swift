internal import Foundation
package import RoomProtocol

/// A token that opens rooms of one service on one server.
package struct AccessToken: Sendable, Equatable {
    package var address: ServerAddress
    package var token: String

    package init(address: ServerAddress, token: String) {
        self.address = address
        self.token = token
    }

    /// Exchanges the service's secret for a token and says how many seconds it lasts.
    package static func signIn(
        at location: ServerLocation
    ) async throws(RoomError) -> (token: AccessToken, seconds: Int) {
        let secret = location.serviceSecret ?? ""
        let request = SignInRequest(serviceId: location.serviceId, serviceSecret: secret)
        guard let body = try? JSONEncoder().encode(request) else { preconditionFailure("two strings did not encode") }
        let answer = try await HTTPExchange(.post, Signalling.signInPath, body: String(decoding: body, as: UTF8.self))
            .run(at: location.address)
        guard answer.status == 200 else { throw refusal(answer, at: location.address) }
        guard let grant = try? JSONDecoder().decode(AccessGrant.self, from: Data(answer.body.utf8)),
            !grant.accessToken.isEmpty
        else { throw unreadable(location.address) }
        return (AccessToken(address: location.address, token: grant.accessToken), grant.expiresIn)
    }

    /// Ends the token, and with it every participant that joined by it.
    package func signOut() async throws(RoomError) {
        let answer = try await HTTPExchange(.post, Signalling.signOutPath, bearer: token).run(at: address)
        guard (200..<300).contains(answer.status) else { throw Self.refusal(answer, at: address) }
    }

    /// The server's own words where it sent some.
    private static func refusal(_ answer: HTTPExchange.Answer, at address: ServerAddress) -> RoomError {
        if let problem = try? JSONDecoder().decode(Problem.self, from: Data(answer.body.utf8)) { return problem.error }
        return RoomError(
            .signInFailed,
            "The server \(address) answered the sign-in with HTTP status \(answer.status): is it a room server?")
    }

    private static func unreadable(_ address: ServerAddress) -> RoomError {
        RoomError(
            .signInResponseUnreadable,
            "The answer of \(address) to the sign-in cannot be read: is it a room server of this version?")
    }
}

internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import RTP
internal import RoomProtocol

/// The server's responses to plain HTTP requests.
struct Routes: Sendable {
    struct Response: Sendable {
        var status: HTTPResponseStatus
        var contentType = "application/json"
        var body: [UInt8] = []
        /// Makes the body, which waits for other threads.
        var laterBody: (@Sendable () async -> [UInt8])?
    }

    /// Longest accepted body in bytes.
    static let maximumBodyLength = 16 * 1024

    var service: ServiceKey
    var tokens: AccessTokens
    var origins: OriginPolicy
    let limits = AccessLimits()
    /// Reports a revoked token to the rooms.
    var revoked: @Sendable (String) -> Void
    var statistics: @Sendable () async -> ServerStatistics

    func answer(_ head: HTTPRequestHead, body: [UInt8], from client: ClientAddress, now: MonotonicTime) -> Response {
        let path = String(head.uri.prefix { $0 != "?" })
        do throws(RoomError) {
            switch (head.method, path) {
            case (.POST, Signalling.signInPath): return try signIn(head, body, client, now)
            case (.POST, Signalling.signOutPath): return try signOut(head)
            case (.GET, Signalling.pageTokenPath): return try pageToken(head, client, now)
            case (.GET, Signalling.statisticsPath): return try statistics(head, client, now)
            case (.GET, Signalling.webSocketPath): return try refuseWebSocket(head)
            case (.GET, _):
                guard let file = WebPage.file(at: path) else { return notFound(path) }
                return Response(status: .ok, contentType: file.contentType, body: file.bytes)
            default: return notFound(path)
            }
        } catch {
            return failure(error)
        }
    }

    private func signIn(
        _ head: HTTPRequestHead, _ body: [UInt8], _ client: ClientAddress, _ now: MonotonicTime
    ) throws(RoomError) -> Response {
        guard origins.admitsOrigin(head.headers) else { throw foreignOrigin }
        try limits.admitSignIn(from: client, now: now)
        guard let request = try? JSONDecoder().decode(SignInRequest.self, from: Data(body)) else {
            throw RoomError(.messageMalformed, "Sign-in needs a JSON object with 'serviceId' and 'serviceSecret'.")
        }
        try admit(request, client, now)
        return json(try tokens.issue(.everyRoom, lifetime: AccessTokens.signInLifetime, now: now))
    }

    /// Throws if the id or the secret is wrong.
    private func admit(_ key: SignInRequest, _ client: ClientAddress, _ now: MonotonicTime) throws(RoomError) {
        guard !service.admits(id: key.serviceId, secret: key.serviceSecret) else { return }
        limits.countWrongSecret(from: client, now: now)
        throw RoomError(
            .serviceInvalid,
            "The service id '\(key.serviceId.prefix(64))' or its secret is wrong. Use those of this server.")
    }

    private func signOut(_ head: HTTPRequestHead) throws(RoomError) -> Response {
        let authorization = head.headers.first(name: "authorization") ?? ""
        guard authorization.hasPrefix("Bearer "), tokens.revoke(String(authorization.dropFirst(7))) else {
            throw RoomError(.tokenInvalid, "Sign-out needs a valid access token as 'Authorization: Bearer …'.")
        }
        revoked(String(authorization.dropFirst(7)))
        return Response(status: .noContent)
    }

    /// The counters of the loops, for clients with the service's secret (RFC 7617). They name no room and no client.
    private func statistics(
        _ head: HTTPRequestHead, _ client: ClientAddress, _ now: MonotonicTime
    ) throws(RoomError) -> Response {
        guard origins.admitsOrigin(head.headers) else { throw foreignOrigin }
        try limits.admitSignIn(from: client, now: now)
        let authorization = (head.headers.first(name: "authorization") ?? "").split(separator: " ")
        guard authorization.count == 2, authorization[0].lowercased() == "basic",
            let key = Data(base64Encoded: String(authorization[1])).map({ String(decoding: $0, as: UTF8.self) }),
            let colon = key.firstIndex(of: ":")
        else {
            throw RoomError(
                .unauthorized, "Statistics need the service's id and secret: 'Authorization: Basic …' (RFC 7617).")
        }
        let request = SignInRequest(
            serviceId: String(key[..<colon]), serviceSecret: String(key[key.index(after: colon)...]))
        try admit(request, client, now)
        return Response(status: .ok) { [statistics] in
            (try? JSONEncoder().encode(await statistics())).map(Array.init) ?? []
        }
    }

    private func pageToken(
        _ head: HTTPRequestHead, _ client: ClientAddress, _ now: MonotonicTime
    ) throws(RoomError) -> Response {
        guard origins.admitsPageToken(head.headers, peerIsLoopback: client.isLoopback) else {
            throw RoomError(
                .forbidden,
                "This server issues tokens to its page only on its own machine. Start it with --open to let browsers "
                    + "on other machines join.")
        }
        try limits.admitPageToken(for: client, now: now)
        let items = URLComponents(string: head.uri)?.queryItems ?? []
        let room = try RoomName(items.first { $0.name == "room" }?.value ?? "")
        return json(try tokens.issue(.oneRoom(room), lifetime: AccessTokens.pageLifetime, now: now))
    }

    /// Refuses a WebSocket request that was not upgraded.
    private func refuseWebSocket(_ head: HTTPRequestHead) throws(RoomError) -> Response {
        guard origins.admitsOrigin(head.headers) else { throw foreignOrigin }
        throw RoomError(.messageMalformed, "This path is a WebSocket. Connect with ws://.")
    }

    private var foreignOrigin: RoomError {
        RoomError(
            .forbidden,
            "Only pages of this server may connect to it, and only by 127.0.0.1, [::1] or localhost if it listens there."
        )
    }

    private func notFound(_ path: String) -> Response {
        Response(status: .notFound, contentType: "text/plain; charset=utf-8", body: Array("Not found.\n".utf8))
    }

    private func json(_ grant: AccessGrant) -> Response {
        Response(status: .ok, body: (try? JSONEncoder().encode(grant)).map(Array.init) ?? [])
    }

    private func failure(_ error: RoomError) -> Response {
        let status: HTTPResponseStatus =
            switch error.code {
            case .serviceInvalid, .tokenInvalid, .unauthorized: .unauthorized
            case .forbidden: .forbidden
            case .serverFull: .serviceUnavailable
            case .tooManyRequests: .tooManyRequests
            default: .badRequest
            }
        return Response(status: status, body: (try? JSONEncoder().encode(Problem(error))).map(Array.init) ?? [])
    }
}

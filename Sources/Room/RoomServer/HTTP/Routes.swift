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
        var headers: [(String, String)] = []
        var body: [UInt8] = []
        /// Makes the response in place of this one, and waits for other threads.
        var later: (@Sendable () async -> Response)?

        static func later(_ make: @escaping @Sendable () async -> Response) -> Response {
            Response(status: .ok, later: make)
        }
    }

    /// Longest accepted body in bytes.
    static let maximumBodyLength = 16 * 1024

    var service: ServiceKey
    var tokens: AccessTokens
    var origins: OriginPolicy
    var limits = AccessLimits()
    var refusals = RefusalLog()
    /// Reports a revoked token to the rooms.
    var revoked: @Sendable (String) -> Void
    var statistics: @Sendable () async -> ServerStatistics
    var administration: Administration

    /// In bytes. No client of ours has one of 2000, and to read a longer one takes the time of others.
    private static let longestURI = 4096
    private static let known = [
        Signalling.signInPath, Signalling.signOutPath, Signalling.pageTokenPath, Signalling.statisticsPath,
        Signalling.roomsPath, Signalling.healthPath, Signalling.webSocketPath,
    ]

    /// The path of a request without the prefix that a client or a proxy puts before it, and without the query: `/v1/room` for
    /// `/any/prefix/v1/room`, and `/main.js` for `/any/prefix/main.js`.
    static func path(of uri: String) -> String {
        guard uri.utf8.count <= longestURI else { return "" }
        let path = uri.prefix { $0 != "?" }
        var rest = path
        while let place = rest.firstRange(of: "/v1/") {
            let route = path[place.lowerBound...]
            if known.contains(where: { route == $0 }) || route.hasPrefix(Signalling.roomsPath + "/") {
                return String(route)
            }
            rest = path[path.index(after: place.lowerBound)...]
        }
        return path.lastIndex(of: "/").map { String(path[$0...]) } ?? String(path)
    }

    /// - Parameter peer: the other end of the connection, which may be a proxy.
    func answer(_ head: HTTPRequestHead, body: [UInt8], from peer: ClientAddress, now: MonotonicTime) -> Response {
        let path = Self.path(of: head.uri)
        let client = ClientAddress(of: peer, head.headers)
        do throws(RoomError) {
            // A response to HEAD is that to GET without its body (RFC 9110, section 9.3.2).
            switch (head.method == .HEAD ? .GET : head.method, path) {
            case (.POST, Signalling.signInPath):
                try check(head, peer)
                return try signIn(body, client, now)
            case (.GET, Signalling.signInPath):
                _ = try tokens.scope(of: Self.token(of: head) ?? "", now: now)
                return Response(status: .noContent)
            case (.POST, Signalling.signOutPath): return try signOut(head)
            case (.GET, Signalling.pageTokenPath):
                try origins.checkPageToken(head.headers, peerIsLoopback: peer.isLoopback)
                return try pageToken(head, client, now)
            case (.GET, Signalling.statisticsPath):
                try authorize(head, peer, client, now)
                return .later { [statistics] in Self.json(await statistics()) }
            case (.GET, Signalling.roomsPath):
                try authorize(head, peer, client, now)
                return .later { [administration] in Self.json(await administration.list()) }
            case (.DELETE, _) where path.hasPrefix(Signalling.roomsPath + "/"):
                try authorize(head, peer, client, now)
                return try remove(path.dropFirst(Signalling.roomsPath.count + 1))
            case (.GET, Signalling.healthPath): return Response(status: .ok, body: Array(#"{"status":"ok"}"#.utf8))
            // The page posts to read why its WebSocket failed: its GET would have no Origin.
            case (.GET, Signalling.webSocketPath), (.POST, Signalling.webSocketPath):
                try check(head, peer)
                throw RoomError(.messageMalformed, "This path is a WebSocket. Connect with ws:// or wss://.")
            case (.GET, _):
                guard let file = WebPage.file(at: path) else { return Self.notFound }
                return Response(status: .ok, contentType: file.contentType, body: file.bytes)
            default: return Self.notFound
            }
        } catch {
            // Only known routes are refused. The rest of a room's path is the client's own.
            let route = path.hasPrefix(Signalling.roomsPath + "/") ? Signalling.roomsPath + "/…" : path
            refusals.write("\(head.method) \(route) refused", error, client, now: now)
            var response = Self.failure(error)
            if path == Signalling.statisticsPath || path.hasPrefix(Signalling.roomsPath),
                response.status == .unauthorized
            {
                // RFC 9110, section 11.6.1: browsers then ask for the id and the secret.
                response.headers = [("www-authenticate", "Basic realm=\"connectlive\"")]
            }
            return response
        }
    }

    /// Throws if the request comes from a page of another server.
    private func check(_ head: HTTPRequestHead, _ peer: ClientAddress) throws(RoomError) {
        try origins.checkOrigin(head.headers, peerIsLoopback: peer.isLoopback)
    }

    private func signIn(
        _ body: [UInt8], _ client: ClientAddress, _ now: MonotonicTime
    ) throws(RoomError) -> Response {
        try limits.admitSignIn(from: client, now: now)
        guard let request = try? JSONDecoder().decode(SignInRequest.self, from: Data(body)) else {
            throw RoomError(.messageMalformed, "Sign-in needs a JSON object with 'serviceId' and 'serviceSecret'.")
        }
        try admit(request, client, now)
        return Self.json(try tokens.issue(.everyRoom, lifetime: AccessTokens.signInLifetime, now: now))
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
        guard let token = Self.token(of: head), tokens.revoke(token) else {
            throw RoomError(.tokenInvalid, "Sign-out needs a valid access token as 'Authorization: Bearer …'.")
        }
        revoked(token)
        return Response(status: .noContent)
    }

    /// The access token of a request (RFC 6750, section 2.1).
    private static func token(of head: HTTPRequestHead) -> String? {
        let authorization = head.headers.first(name: "authorization") ?? ""
        return authorization.hasPrefix("Bearer ") ? String(authorization.dropFirst(7)) : nil
    }

    /// Throws unless the request has the service's secret (RFC 7617), and comes from no page of another server.
    private func authorize(
        _ head: HTTPRequestHead, _ peer: ClientAddress, _ client: ClientAddress, _ now: MonotonicTime
    ) throws(RoomError) {
        try check(head, peer)
        try limits.admitSignIn(from: client, now: now)
        let authorization = (head.headers.first(name: "authorization") ?? "").split(separator: " ")
        guard authorization.count == 2, authorization[0].lowercased() == "basic",
            let key = Data(base64Encoded: String(authorization[1])).map({ String(decoding: $0, as: UTF8.self) }),
            let colon = key.firstIndex(of: ":")
        else {
            throw RoomError(
                .unauthorized, "This path needs the service's id and secret: 'Authorization: Basic …' (RFC 7617).")
        }
        let request = SignInRequest(
            serviceId: String(key[..<colon]), serviceSecret: String(key[key.index(after: colon)...]))
        try admit(request, client, now)
    }

    /// Ends `ROOM`, or removes the participant of `ROOM/participants/ID`.
    private func remove(_ path: Substring) throws(RoomError) -> Response {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).map {
            String($0).removingPercentEncoding ?? ""
        }
        guard parts.count == 1 || parts.count == 3 && parts[1] == "participants" else { return Self.notFound }
        let room = try RoomName(parts[0])
        return .later { [administration] in
            do throws(RoomError) {
                return Self.json(
                    parts.count == 1
                        ? try await administration.destroy(room) : try await administration.kick(parts[2], from: room))
            } catch {
                return Self.failure(error)
            }
        }
    }

    private func pageToken(
        _ head: HTTPRequestHead, _ client: ClientAddress, _ now: MonotonicTime
    ) throws(RoomError) -> Response {
        try limits.admitPageToken(for: client, now: now)
        let items = URLComponents(string: head.uri)?.queryItems ?? []
        let room = try RoomName(items.first { $0.name == "room" }?.value ?? "")
        return Self.json(try tokens.issue(.oneRoom(room), lifetime: AccessTokens.pageLifetime, now: now))
    }

    private static let notFound = Response(
        status: .notFound, contentType: "text/plain; charset=utf-8", body: Array("Not found.\n".utf8))

    private static func json(_ value: some Encodable) -> Response {
        Response(status: .ok, body: (try? JSONEncoder().encode(value)).map(Array.init) ?? [])
    }

    private static func failure(_ error: RoomError) -> Response {
        let status: HTTPResponseStatus =
            switch error.code {
            case .serviceInvalid, .tokenInvalid, .unauthorized: .unauthorized
            case .forbidden: .forbidden
            case .noSuchRoom, .noSuchParticipant: .notFound
            case .serverFull: .serviceUnavailable
            case .tooManyRequests: .tooManyRequests
            default: .badRequest
            }
        return Response(status: status, body: (try? JSONEncoder().encode(Problem(error))).map(Array.init) ?? [])
    }
}

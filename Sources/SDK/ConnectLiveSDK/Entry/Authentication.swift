internal import RoomClient
internal import RoomProtocol
internal import Synchronization

/// The process's sign-in: the token for rooms, its renewal, and the tokens that a sign-out revokes.
final class Authentication: Sendable {
    struct Credentials: Sendable {
        var serviceId: String
        var secret: String?
        /// The application's own token. It is not renewed, and a sign-out does not revoke it.
        var token: String?
        var endpoint: String
        /// How the caller passes the server and its key, for error messages.
        var namer = ServerNamer.application
    }

    struct Grant: Sendable {
        var token: AccessToken
        /// When a new token is due. Nil for the application's own token.
        var renewal: ContinuousClock.Instant?
    }

    private struct State {
        /// The number of sign-ins that have begun.
        var begun = 0
        /// The sign-in in effect, or the last one before the latest sign-out. Earlier ones have no effect.
        var settled = 0
        var credentials: Credentials?
        var grant: Grant?
        /// The tokens that the server issued for rooms, oldest first.
        var granted: [AccessToken] = []

        mutating func take(_ new: Grant) {
            grant = new
            if new.renewal != nil { granted = (granted + [new.token]).suffix(grantedCapacity) }
        }
    }

    /// A token lasts an hour, so the oldest of these expired days ago.
    private static let grantedCapacity = 240

    private let state = Mutex(State())
    private let obtain: @Sendable (Credentials) async throws(RoomError) -> Grant
    private let revoke: @Sendable (AccessToken) async -> Void

    /// - Parameters:
    ///   - obtain: exchanges credentials for a token
    ///   - revoke: revokes a token at its server
    init(
        obtain: @escaping @Sendable (Credentials) async throws(RoomError) -> Grant,
        revoke: @escaping @Sendable (AccessToken) async -> Void
    ) {
        self.obtain = obtain
        self.revoke = revoke
    }

    /// A sign-in in progress.
    struct Attempt: Sendable {
        fileprivate let number: Int
        fileprivate let credentials: Credentials
    }

    /// Begins a sign-in. Its order among sign-ins and sign-outs is that of these calls.
    func begin(_ credentials: Credentials) -> Attempt {
        state.withLock { state in
            state.begun += 1
            return Attempt(number: state.begun, credentials: credentials)
        }
    }

    /// Exchanges the credentials for a token. Of two sign-ins, the one that began later wins. A sign-out cancels those
    /// in progress: they fail with 1102.
    func finish(_ attempt: Attempt) async throws(RoomError) {
        let grant = try await obtain(attempt.credentials)
        try keep(grant) { state in
            guard attempt.number > state.settled else { return false }
            state.settled = attempt.number
            state.credentials = attempt.credentials
            return true
        }
    }

    /// Ends the sign-in, and revokes every token that the servers issued since the last sign-out.
    func signOut() {
        let tokens = state.withLock { state in
            let tokens = state.granted
            state = State(begun: state.begun, settled: state.begun)
            return tokens
        }
        revokeLater(tokens)
    }

    /// The token for entering a room. It is renewed if it is about to expire, or if the server refused it because it is
    /// another one than before.
    func token(
        now: ContinuousClock.Instant = .now, refused: String? = nil
    ) async throws(RoomError) -> AccessToken {
        let (settled, credentials, grant) = state.withLock { ($0.settled, $0.credentials, $0.grant) }
        guard let credentials, let grant else {
            throw RoomError(
                .notSignedIn,
                "The application is not signed in. Call ConnectLive.signIn before you connect to a room.")
        }
        guard let renewal = grant.renewal, now > renewal || grant.token.token == refused else {
            return grant.token
        }
        let renewed = try await obtain(credentials)
        try keep(renewed) { $0.settled == settled && $0.grant != nil }
        return renewed.token
    }

    /// Keeps the grant if it is still wanted. Otherwise revokes it and throws 1102.
    private func keep(_ grant: Grant, if isWanted: (inout State) -> Bool) throws(RoomError) {
        let isKept = state.withLock { state in
            guard isWanted(&state) else { return false }
            state.take(grant)
            return true
        }
        guard !isKept else { return }
        if grant.renewal != nil { revokeLater([grant.token]) }
        throw RoomError(
            .authenticationReleased,
            "The sign-in ended before the server replied, because signOut or a later signIn was called. Sign in again.")
    }

    private func revokeLater(_ tokens: [AccessToken]) {
        guard !tokens.isEmpty else { return }
        Task.detached { [revoke] in
            for token in tokens { await revoke(token) }
        }
    }
}

extension Authentication {
    /// Tokens of room servers.
    static let shared = Authentication(
        obtain: { credentials async throws(RoomError) in
            let locator = ServerLocator(
                server: credentials.endpoint, serviceId: credentials.serviceId, serviceSecret: credentials.secret,
                namer: credentials.namer)
            let location = try locator.locate(needsSecret: credentials.token == nil)
            if let token = credentials.token {
                guard !token.isEmpty else {
                    throw RoomError(.serviceMissing, "The token is empty. Request one from your service.")
                }
                return Grant(token: AccessToken(address: location.address, token: token))
            }
            let granted = try await AccessToken.signIn(at: location)
            return Grant(token: granted.token, renewal: .now + .seconds(granted.seconds) - renewalMargin)
        },
        revoke: { try? await $0.signOut() })

    /// How long before its expiry a token is renewed.
    private static let renewalMargin = Duration.seconds(60)
}

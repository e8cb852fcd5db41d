internal import Dispatch
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
        /// A PEM file with the authorities of the server's certificate.
        var authorities = ConnectLive.certificateAuthorities
        /// How the caller passes the server and its key, for error messages.
        var namer = ServerNamer.application
    }

    struct Grant: Sendable {
        var token: AccessToken
        /// When the token is too old to enter a room with. Nil for the application's own token.
        var renewal: ContinuousClock.Instant?
        /// After how long another token is obtained, without being asked for. Nil for never.
        var refresh: Duration?

        init(token: AccessToken, renewal: ContinuousClock.Instant? = nil, refresh: Duration? = nil) {
            (self.token, self.renewal, self.refresh) = (token, renewal, refresh)
        }

        /// A token that a server has issued for so many seconds. One that expires at once is obtained for each room, and not
        /// periodically: the server would keep all of them.
        init(token: AccessToken, issuedFor seconds: Int, now: ContinuousClock.Instant = .now) {
            let life = Duration.seconds(seconds)
            self.init(
                token: token, renewal: now + life - Authentication.renewalMargin,
                refresh: seconds > 0 ? life * 3 / 4 : nil)
        }
    }

    private struct State {
        /// The number of sign-ins that have begun.
        var begun = 0
        /// The sign-in in effect, or the last one before the latest sign-out. Earlier ones have no effect.
        var settled = 0
        var credentials: Credentials?
        var grant: Grant?
        /// Whether the application has signed out of a sign-in.
        var hasSignedOut = false
        /// Called with the error of a renewal that fails.
        var observers: [ObjectIdentifier: @Sendable (RoomError) -> Void] = [:]
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
    private let schedule: Schedule
    private let choose: @Sendable (ClosedRange<Double>) -> Double

    /// Runs a function after a time.
    typealias Schedule = @Sendable (Duration, @escaping @Sendable () async -> Void) -> Void

    /// - Parameters:
    ///   - obtain: exchanges credentials for a token
    ///   - revoke: revokes a token at its server
    ///   - schedule: runs the function after a time, on any thread
    ///   - choose: a random number
    init(
        obtain: @escaping @Sendable (Credentials) async throws(RoomError) -> Grant,
        revoke: @escaping @Sendable (AccessToken) async -> Void,
        schedule: @escaping Schedule = { delay, body in
            DispatchQueue.global().asyncAfter(deadline: .now() + delay / .seconds(1)) { Task.detached(operation: body) }
        },
        choose: @escaping @Sendable (ClosedRange<Double>) -> Double = { .random(in: $0) }
    ) {
        self.obtain = obtain
        self.revoke = revoke
        self.schedule = schedule
        self.choose = choose
    }

    /// A sign-in in progress.
    struct Attempt: Sendable {
        fileprivate let number: Int
        fileprivate let credentials: Credentials

        /// Whether the parameters of `ConnectLive.signIn` name the server.
        var isOfApplication: Bool { if case .application = credentials.namer { true } else { false } }
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
            let hasSignedOut = state.hasSignedOut || state.grant != nil
            state = State(
                begun: state.begun, settled: state.begun, hasSignedOut: hasSignedOut, observers: state.observers)
            return tokens
        }
        revokeLater(tokens)
    }

    /// The token for entering a room. It is renewed if it is about to expire, or if the server refused it because it is
    /// another one than before.
    func token(
        now: ContinuousClock.Instant = .now, refused: String? = nil
    ) async throws(RoomError) -> AccessToken {
        let (settled, credentials, grant, hasSignedOut) = state.withLock {
            ($0.settled, $0.credentials, $0.grant, $0.hasSignedOut)
        }
        guard let credentials, let grant else {
            throw hasSignedOut
                ? RoomError(
                    .signedOut,
                    "The application has signed out. Call ConnectLive.signIn again before you connect to a room.")
                : RoomError(
                    .notSignedIn,
                    "The application is not signed in. Call ConnectLive.signIn before you connect to a room.")
        }
        guard let renewal = grant.renewal else {
            guard grant.token.token != refused else {
                throw RoomError(
                    .tokenNotReplaced,
                    "The server refuses the token of the application. Sign in with another one from your service.")
            }
            return grant.token
        }
        guard now > renewal || grant.token.token == refused else { return grant.token }
        return try await renew(credentials, settled)
    }

    private func renew(_ credentials: Credentials, _ settled: Int) async throws(RoomError) -> AccessToken {
        let renewed = try await obtain(credentials)
        try keep(renewed) { $0.settled == settled && $0.grant != nil }
        return renewed.token
    }

    // MARK: - Periodic renewal

    /// Calls the function when a periodic renewal fails, once until one succeeds.
    func observe(as owner: AnyObject, failed: @escaping @Sendable (RoomError) -> Void) {
        state.withLock { $0.observers[ObjectIdentifier(owner)] = failed }
    }

    func stopObserving(as owner: AnyObject) { state.withLock { $0.observers[ObjectIdentifier(owner)] = nil } }

    /// Another token is obtained at this time, unless there is another one by then.
    private func scheduleRenewal(of grant: Grant) {
        guard let delay = grant.refresh else { return }
        // Clients that signed in together, as after a restart of the server, renew one after the other.
        schedule(max(delay * choose(0.75...1), Self.firstPause)) { [weak self] in
            await self?.renewPeriodically(grant.token.token, failures: 0)
        }
    }

    private func renewPeriodically(_ token: String, failures: Int) async {
        let (settled, credentials) = state.withLock { state in
            (state.settled, state.grant?.token.token == token ? state.credentials : nil)
        }
        guard let credentials else { return }
        do throws(RoomError) {
            _ = try await renew(credentials, settled)
        } catch {
            guard error.code != .authenticationReleased else { return }
            // A sign-out or another sign-in may have come meanwhile.
            let observers = state.withLock { state in
                state.grant?.token.token == token ? Array(state.observers.values) : nil
            }
            guard let observers else { return }
            if failures == 0 {
                let problem = RoomError(
                    .renewalFailed, "The access token was not renewed: \(error.failing(.renewal).message)")
                for failed in observers { failed(problem) }
            }
            // Each further attempt would count as one of a guesser.
            guard error.code != .serviceInvalid else { return }
            let pause = min(Self.longestPause, Self.firstPause * (1 << min(failures, 8)))
            schedule(pause * choose(0.5...1)) { [weak self] in
                await self?.renewPeriodically(token, failures: failures + 1)
            }
        }
    }

    private static let firstPause = Duration.seconds(10)
    private static let longestPause = Duration.seconds(300)

    /// Keeps the grant if it is still wanted. Otherwise revokes it and throws 1102.
    private func keep(_ grant: Grant, if isWanted: (inout State) -> Bool) throws(RoomError) {
        let isKept = state.withLock { state in
            guard isWanted(&state) else { return false }
            state.take(grant)
            return true
        }
        guard !isKept else { return scheduleRenewal(of: grant) }
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
                authorities: credentials.authorities, namer: credentials.namer)
            let location = try locator.locate(needsSecret: credentials.token == nil)
            if let token = credentials.token {
                guard !token.isEmpty else {
                    throw RoomError(.serviceMissing, "The token is empty. Request one from your service.")
                }
                let own = AccessToken(address: location.address, trust: location.trust, token: token)
                try await own.check()
                return Grant(token: own)
            }
            let granted = try await AccessToken.signIn(at: location)
            return Grant(token: granted.token, issuedFor: granted.seconds)
        },
        revoke: { try? await $0.signOut() })

    /// How long before its expiry a token is renewed.
    private static let renewalMargin = Duration.seconds(60)
}

import RoomProtocol
import Synchronization
import TestSupport
import Testing

@testable import ConnectLiveSDK
@testable import RoomClient

/// The periodic renewal of tokens. Time passes when the test lets it.
@Suite(.timeLimit(.minutes(1))) struct RenewalTests {
    private let service = Service()
    private let scripted: ScriptedRoom
    private let authentication: Authentication

    init() {
        authentication = Authentication(
            obtain: { [service] _ async throws(RoomError) in try await service.grant() },
            revoke: { [service] token in service.revoked.append(token.token) },
            schedule: { [service] delay, body in service.timers.append((delay, body)) },
            choose: { [service] range in service.isEarly.withLock { $0 } ? range.lowerBound : range.upperBound })
        scripted = ScriptedRoom(authentication: authentication)
    }

    private func signIn() async throws {
        try await authentication.finish(authentication.begin(.init(serviceId: "a", secret: "b", endpoint: "")))
    }

    /// Lets the next timer pass, and waits for what it does.
    private func passNext(attempts: Int) async throws {
        await (try #require(service.timers.all.last)).body()
        #expect(service.attempts == attempts)
    }

    @Test func `a token is renewed at three quarters of its life, for ten hours`() async throws {
        try await signIn()
        var time = Duration.zero
        for hour in 2...14 {
            #expect(service.timers.count == hour - 1)
            time += service.timers.all[hour - 2].delay
            try await passNext(attempts: hour)
            #expect(try await authentication.token().token == "\(hour)")
        }
        #expect(time == .seconds(13 * 2700) && service.attempts == 14)
    }

    @Test(arguments: [Int.min / 2, -1, 0])
    func `tokens that expire at once are obtained for each room, and not periodically`(seconds: Int) async throws {
        service.life.withLock { $0 = seconds }
        try await signIn()
        #expect(service.timers.all.isEmpty)
        #expect(try await authentication.token().token == "2")
        #expect(service.timers.all.isEmpty)
    }

    @Test func `tokens of a few seconds are renewed every ten seconds`() async throws {
        service.life.withLock { $0 = 4 }
        try await signIn()
        #expect(service.timers.all.map(\.delay) == [.seconds(10)])
    }

    @Test func `clients that signed in together renew and retry at different times`() async throws {
        service.isEarly.withLock { $0 = true }
        try await signIn()
        service.problem.withLock { $0 = RoomError(.serverUnreachable, "The server is away.") }
        for attempt in 2...8 { try await passNext(attempts: attempt) }
        #expect(service.timers.all.map(\.delay.components.seconds) == [2025, 5, 10, 20, 40, 80, 150, 150])
    }

    @Test func `a renewal that fails is an error of connected rooms, once, and is tried again later and later`()
        async throws
    {
        try await signIn()
        scripted.join()
        let other = ScriptedRoom(authentication: authentication)
        service.problem.withLock { $0 = RoomError(.serverUnreachable, "The server is away.") }
        for attempt in 2...9 {
            try await passNext(attempts: attempt)
            #expect(service.timers.count == attempt)
        }
        #expect(scripted.errors == [1101] && scripted.criticalErrors.isEmpty && other.errors.isEmpty)
        guard case .error(_, let message, _) = scripted.listener.events.last else { return }
        #expect(message.contains("The server is away."))
        #expect(service.timers.all.map(\.delay.components.seconds) == [2700, 10, 20, 40, 80, 160, 300, 300, 300])
        service.problem.withLock { $0 = nil }
        try await passNext(attempts: 10)
        #expect(service.timers.count == 10)
        #expect(service.timers.all.last?.delay == .seconds(2700))
        // The next failure is another one.
        service.problem.withLock { $0 = RoomError(.serverUnreachable, "The server is away.") }
        try await passNext(attempts: 11)
        #expect(scripted.errors == [1101, 1101])
    }

    @Test func `a refused renewal is not tried again, and a room that has ended hears of none`() async throws {
        try await signIn()
        scripted.join()
        scripted.link.send(.ended(.destroyed, nil))
        service.problem.withLock { $0 = RoomError(.serviceInvalid, "The secret is another one.") }
        try await passNext(attempts: 2)
        #expect(service.timers.count == 1 && scripted.errors.isEmpty)
    }

    @Test func `signing out ends the renewal, and another connect has a code of its own`() async throws {
        let first = await #expect(throws: RoomError.self) { try await authentication.token() }
        #expect(first?.code == .notSignedIn)
        try await signIn()
        authentication.signOut()
        await service.timers.all[0].body()
        let second = await #expect(throws: RoomError.self) { try await authentication.token() }
        #expect(second?.code == .signedOut && service.attempts == 1)
    }

    @Test func `a renewal that fails after a sign-out or another sign-in is no error, and is not tried again`()
        async throws
    {
        scripted.join()
        try await signIn()
        service.problem.withLock { $0 = RoomError(.serverUnreachable, "The server is away.") }
        service.meanwhile.withLock { [authentication] in $0 = { authentication.signOut() } }
        try await passNext(attempts: 2)
        #expect(scripted.errors.isEmpty && service.timers.count == 1)
        service.problem.withLock { $0 = nil }
        try await signIn()
        service.meanwhile.withLock { [service, authentication] in
            $0 = {
                try? await authentication.finish(
                    authentication.begin(.init(serviceId: "a", secret: "b", endpoint: "")))
                service.problem.withLock { $0 = RoomError(.serverUnreachable, "The server is away.") }
            }
        }
        try await passNext(attempts: 5)
        // That of the newer sign-in is the last.
        #expect(scripted.errors.isEmpty && service.timers.count == 3)
    }

    @Test func `a token that is renewed while the application signs out is revoked`() async throws {
        scripted.join()
        try await signIn()
        service.meanwhile.withLock { [authentication] in $0 = { authentication.signOut() } }
        try await passNext(attempts: 2)
        try await requireEventually("both are revoked") { service.revoked.all.sorted() == ["1", "2"] }
        #expect(scripted.errors.isEmpty && service.timers.count == 1)
        let error = await #expect(throws: RoomError.self) { try await authentication.token() }
        #expect(error?.code == .signedOut)
    }

    @Test func `a refused token of the application has no replacement`() async throws {
        service.isOwn.withLock { $0 = true }
        try await signIn()
        #expect(try await authentication.token().token == "1")
        let error = await #expect(throws: RoomError.self) { try await authentication.token(refused: "1") }
        #expect(error?.code == .tokenNotReplaced)
        try await signIn()
        #expect(try await authentication.token(refused: "1").token == "2")
        #expect(service.timers.all.isEmpty)
    }
}

/// Grants tokens that are numbered, for an hour each.
private final class Service: Sendable {
    let timers = Collected<(delay: Duration, body: @Sendable () async -> Void)>()
    /// Whether the shortest of random times are chosen, and not the longest.
    let isEarly = Mutex(false)
    /// Happens while the next token is requested.
    let meanwhile = Mutex<(@Sendable () async -> Void)?>(nil)
    let revoked = Collected<String>()
    let problem = Mutex<RoomError?>(nil)
    /// Whether the tokens are the application's own.
    let isOwn = Mutex(false)
    /// Of a token, in seconds.
    let life = Mutex(3600)
    private let count = Mutex((attempts: 0, granted: 0))

    var attempts: Int { count.withLock { $0.attempts } }

    func grant() async throws(RoomError) -> Authentication.Grant {
        let number = count.withLock { count in
            count.attempts += 1
            return count.attempts
        }
        if let body = meanwhile.withLock({ body in body.take() }) { await body() }
        if let problem = problem.withLock({ $0 }) { throw problem }
        let token = AccessToken(address: try ServerAddress("ws://server:1"), token: "\(number)")
        guard !isOwn.withLock({ $0 }) else { return .init(token: token) }
        return .init(token: token, issuedFor: life.withLock { $0 })
    }
}

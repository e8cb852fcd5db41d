import RoomClient
import RoomProtocol
import Synchronization
import Testing

@testable import ConnectLiveSDK

/// Sign-ins, renewals and sign-outs in every order. The server is a function that responds when the test lets it.
@Suite(.timeLimit(.minutes(1)))
struct AuthenticationTests {
    private let server = Server()

    private var authentication: Authentication {
        Authentication(
            obtain: { [server] credentials async throws(RoomError) in await server.grant(credentials) },
            revoke: { [server] in server.revoked.yield($0.token) }, schedule: { _, _ in })
    }

    private func credentials(_ name: String) -> Authentication.Credentials {
        .init(serviceId: name, secret: "secret", endpoint: "")
    }

    private func signIn(_ name: String, to authentication: Authentication) async throws {
        server.answer(name)
        try await authentication.finish(authentication.begin(credentials(name)))
    }

    @Test func `signing out revokes the tokens of every sign-in and renewal, oldest first`() async throws {
        let authentication = authentication
        try await signIn("a", to: authentication)
        try await signIn("b", to: authentication)
        #expect(try await authentication.token(now: .now + .seconds(30)).token == "b1")
        #expect(try await authentication.token(now: .now + .seconds(90)).token == "b2")
        authentication.signOut()
        #expect(await server.revocations(3) == ["a1", "b1", "b2"])
        await #expect(throws: RoomError.self) { try await authentication.token() }
    }

    @Test func `a sign-out ends a sign-in in progress`() async throws {
        let authentication = authentication
        let attempt = authentication.begin(credentials("a"))
        authentication.signOut()
        server.answer("a")
        let error = await #expect(throws: RoomError.self) { try await authentication.finish(attempt) }
        #expect(error?.code == .authenticationReleased)
        #expect(await server.revocations(1) == ["a1"])
        await #expect(throws: RoomError.self) { try await authentication.token() }
    }

    @Test func `the sign-in that begins later wins, whichever reply arrives first`() async throws {
        let authentication = authentication
        let earlier = authentication.begin(credentials("a"))
        try await signIn("b", to: authentication)
        server.answer("a")
        await #expect(throws: RoomError.self) { try await authentication.finish(earlier) }
        #expect(await server.revocations(1) == ["a1"])
        #expect(try await authentication.token().token == "b1")
    }

    @Test func `a sign-out during a renewal revokes the new token too`() async throws {
        let authentication = authentication
        try await signIn("a", to: authentication)
        server.hold("a")
        let renewal = Task { try await authentication.token(now: .now + .seconds(90)) }
        await server.requested("a", count: 2)
        authentication.signOut()
        server.answer("a")
        await #expect(throws: RoomError.self) { try await renewal.value }
        #expect(Set(await server.revocations(2)) == ["a1", "a2"])
    }

    @Test func `the application's own token is neither renewed nor revoked`() async throws {
        let authentication = authentication
        server.answer("a")
        try await authentication.finish(
            authentication.begin(.init(serviceId: "a", token: "own", endpoint: "")))
        #expect(try await authentication.token(now: .now + .seconds(9000)).token == "own")
        authentication.signOut()
        try await signIn("b", to: authentication)
        authentication.signOut()
        #expect(await server.revocations(1) == ["b1"])
    }
}

/// Grants tokens that are named after the service and counted, for 60 s each.
private final class Server: Sendable {
    private struct Service {
        var isHeld = true
        var requests = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
        var observers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let services = Mutex<[String: Service]>([:])
    let revoked: AsyncStream<String>.Continuation
    private let revocations: AsyncStream<String>

    init() { (revocations, revoked) = AsyncStream.makeStream() }

    func hold(_ name: String) { services.withLock { $0[name, default: Service()].isHeld = true } }

    func answer(_ name: String) {
        let waiting = services.withLock { services in
            services[name, default: Service()].isHeld = false
            defer { services[name]?.waiting = [] }
            return services[name]?.waiting ?? []
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when the service has received this many requests.
    func requested(_ name: String, count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = services.withLock { services in
                guard services[name, default: Service()].requests < count else { return true }
                services[name]?.observers.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    func revocations(_ count: Int) async -> [String] {
        var tokens: [String] = []
        for await token in revocations {
            tokens.append(token)
            if tokens.count == count { break }
        }
        return tokens
    }

    func grant(_ credentials: Authentication.Credentials) async -> Authentication.Grant {
        let name = credentials.serviceId
        let number = services.withLock { services in
            services[name, default: Service()].requests += 1
            return services[name]?.requests ?? 0
        }
        await withCheckedContinuation { continuation in
            let (isHeld, observers) = services.withLock { services in
                let service = services[name] ?? Service()
                if service.isHeld { services[name]?.waiting.append(continuation) }
                services[name]?.observers.removeAll { $0.count <= number }
                return (service.isHeld, service.observers.filter { $0.count <= number })
            }
            for observer in observers { observer.continuation.resume() }
            if !isHeld { continuation.resume() }
        }
        guard let address = try? ServerAddress("ws://server:1") else { preconditionFailure("an address of ours") }
        guard let token = credentials.token else {
            return .init(token: AccessToken(address: address, token: "\(name)\(number)"), renewal: .now + .seconds(60))
        }
        return .init(token: AccessToken(address: address, token: token))
    }
}

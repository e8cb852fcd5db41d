import Logging
import RoomProtocol
import RoomServer
import Testing

@testable import RoomClient

/// A server on a free port of loopback, and what nodes and engines need to come in.
struct RoomStage {
    let server: RoomServer
    private static let key = ServiceKey(id: "test", secret: "a secret for tests")

    private init(_ server: RoomServer) { self.server = server }

    /// Runs the test and stops the server whatever happens.
    static func run(_ body: (RoomStage) async throws -> Void) async throws {
        var configuration = RoomServer.Configuration(
            service: key, log: Logger(label: "server") { _ in SwiftLogNoOpLogHandler() })
        configuration.port = 0
        let server = try await RoomServer.start(configuration)
        do {
            try await body(RoomStage(server))
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    func token() async throws -> AccessToken {
        let location = ServerLocation(
            address: try ServerAddress(server.url), serviceId: Self.key.id, serviceSecret: Self.key.secret)
        return try await AccessToken.signIn(at: location).token
    }

    /// The settings by which a node finds the server.
    func settings(room: String) -> [String: String] {
        ["room": room, "server": server.url, "service-id": Self.key.id, "service-secret": Self.key.secret]
    }
}

/// Waits until the condition holds, looking every few milliseconds.
func eventually(_ what: String, within seconds: Int = 10, _ condition: () async -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while await !condition() {
        try #require(ContinuousClock.now < deadline, "not in time: \(what)")
        try await Task.sleep(for: .milliseconds(2))
    }
}

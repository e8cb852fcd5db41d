import Logging
import RoomProtocol
import RoomServer

@testable import RoomClient

/// A server on a free port of loopback, and the credentials that nodes and engines need to join.
struct RoomStage {
    let server: RoomServer
    /// In place of the service's secret.
    var nodesToken: AccessToken?
    private static let key = ServiceKey(id: "test", secret: "a secret for tests")

    private init(_ server: RoomServer) { self.server = server }

    /// Runs the test, and always stops the server.
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

    /// The settings with which a node finds the server.
    func settings(room: String) -> [String: String] {
        if let nodesToken {
            return ["room": room, "server": server.url, "service-id": Self.key.id, "token": nodesToken.token]
        }
        return ["room": room, "server": server.url, "service-id": Self.key.id, "service-secret": Self.key.secret]
    }
}

internal import ArgumentParser
internal import ConnectLiveSDK
internal import Dispatch
internal import Foundation
internal import Logging
internal import PeerIO
internal import PeerLoop
internal import RoomClient
internal import RoomServer

/// How to reach a server that another process runs.
struct ServerAccess: Codable, Sendable {
    var host: String
    var port: Int
    var id: String
    var secret: String

    /// Signs in.
    func token() async throws -> String {
        let location = try ServerLocator(
            server: "ws://\(host):\(port)", serviceId: id, serviceSecret: secret
        ).locate()
        return try await AccessToken.signIn(at: location).token.token
    }
}

/// A room server for `forwarding` to load: prints its address and runs until its standard input ends.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "A room server for 'forwarding' to load.", shouldDisplay: false)

    /// Allocations made on a thread that is called as the server's, for the counter to show that it counts.
    static let knownAllocations = 1000

    @Option(help: "Address to listen on.") var host = "127.0.0.1"
    @Option(help: "Threads that forward media.") var threads = 1
    @Option(help: "The most participants.") var participants = 1000
    @Option(help: "Participants of one room on a thread before the room spreads.") var roomLoopSize =
        RoomServer.defaultRoomLoopSize

    func run() async throws {
        Self.allocateKnownNumber()
        let server = try await startRoomServer(
            at: host, threads: threads, participants: participants, roomLoopSize: roomLoopSize)
        try printJSON(
            ServerAccess(
                host: host, port: server.port, id: server.configuration.service.id,
                secret: server.configuration.service.secret))
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                while readLine() != nil {}
                continuation.resume()
            }
        }
        await server.stop()
    }

    private static func allocateKnownNumber() {
        let loop = EventLoop(name: "rooms")
        loop.execute {
            var arrays: [[UInt8]] = []
            arrays.reserveCapacity(knownAllocations)
            for index in 1..<knownAllocations { arrays.append([UInt8](repeating: 1, count: index)) }
            precondition(arrays.count == knownAllocations - 1)
        }
        loop.shutdown()
    }
}

/// A server with a key of its own, on any free port.
func startRoomServer(
    at address: String = "127.0.0.1", threads: Int = 1, participants: Int = 1000,
    roomLoopSize: Int = RoomServer.defaultRoomLoopSize
) async throws -> RoomServer {
    var log = Logger(label: "benchmarks", factory: StreamLogHandler.standardError(label:))
    log.logLevel = .error
    var configuration = RoomServer.Configuration(service: .development(), log: log)
    configuration.host = address
    configuration.port = 0
    configuration.threads = threads
    configuration.maximumParticipants = participants
    configuration.roomLoopSize = roomLoopSize
    return try await RoomServer.start(configuration)
}

/// Measures participants on the SDK, with a server of their own to which they have signed in, and prints the result.
func measureOnServer(_ measure: () async throws -> some Encodable) async throws {
    // The main thread waits for the end, so nothing runs the main queue.
    ConnectLive.callbackQueue = DispatchQueue(label: "callbacks")
    let server = try await startRoomServer()
    let service = server.configuration.service
    do {
        let (code, message) = await ConnectLive.signIn(
            serviceId: service.id, serviceSecret: service.secret, endpoint: server.url)
        guard code == 0 else { throw BenchmarkError(message) }
        let result = try await measure()
        await server.stop()
        try printJSON(result)
    } catch {
        await server.stop()
        throw error
    }
}

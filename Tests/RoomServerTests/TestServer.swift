import Foundation
import Logging
import RTP
import RoomFixtures
import RoomProtocol
import Synchronization
import Testing

@testable import RoomServer

/// A server on a free port. It logs nothing unless `change` sets a log.
func startServer(
    open: Bool = false, _ change: (inout RoomServer.Configuration) -> Void = { _ in }
) async throws -> RoomServer {
    var log = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    log.logLevel = .critical
    var configuration = RoomServer.Configuration(service: ServiceKey(id: "svc", secret: "a secret"), log: log)
    configuration.port = 0
    // The same on machines with more cores.
    configuration.threads = 1
    configuration.isOpen = open
    change(&configuration)
    return try await RoomServer.start(configuration)
}

/// A server on a free port for the length of a test, and an access token for it.
func withServer(
    open: Bool = false, configured change: (inout RoomServer.Configuration) -> Void = { _ in },
    _ body: @Sendable (RoomServer, AccessGrant) async throws -> Void
) async throws {
    let server = try await startServer(open: open, change)
    do {
        let grant = try await Task { try signIn(server) }.value
        try await body(server, grant)
    } catch {
        await server.stop()
        throw error
    }
    await server.stop()
}

/// The lines that a server logs: level, message, error and reason.
final class LogLines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }
    var logger: Logger { Logger(label: "test") { _ in Recorder(lines: self) } }

    private struct Recorder: LogHandler {
        let lines: LogLines
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let details = ["error", "reason"].compactMap { event.metadata?[$0] }.map { " \($0)" }.joined()
            lines.lines.withLock { $0.append("\(event.level) \(event.message)\(details)") }
        }
    }
}

func signIn(_ server: RoomServer, secret: String = "a secret") throws -> AccessGrant {
    let (status, body) = try RawClient(port: server.port).request(
        "POST /v1/sign-in HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\n",
        body: #"{"serviceId":"svc","serviceSecret":"\#(secret)"}"#)
    guard status == 200 else { throw try JSONDecoder().decode(Problem.self, from: Data(body.utf8)).error }
    return try JSONDecoder().decode(AccessGrant.self, from: Data(body.utf8))
}

/// The response to a request with the service's secret.
func readStatistics(of server: RoomServer) throws -> ServerStatistics {
    let key = Data("svc:a secret".utf8).base64EncodedString()
    let (status, body) = try RawClient(port: server.port).request(
        "GET /v1/statistics HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\nauthorization: Basic \(key)\r\n")
    #expect(status == 200)
    return try JSONDecoder().decode(ServerStatistics.self, from: Data(body.utf8))
}

func join(_ server: RoomServer, _ token: String, room: String = "kitchen") throws -> (RawClient, Joined) {
    let client = try RawClient(port: server.port)
    #expect(try client.openWebSocket(port: server.port) == 101)
    client.sendMessage(.join(Join(token: token, room: room)), id: 1)
    let answer = try client.message { $0.id == 1 }
    switch answer.message {
    case .joined(let joined): return (client, joined)
    case .error(let problem): throw problem.error
    default: throw RoomError(.messageUnknown, "\(answer)")
    }
}

/// A well-formed offer of fake streams; no media ever arrives.
func publication(_ codecs: [Codec]) -> Publish {
    let transport = TransportDescription(
        iceUfrag: "abcd", icePwd: "abcdefghijklmnopqrstuv",
        fingerprints: [Fingerprint(algorithm: "sha-256", digest: Array(repeating: 7, count: 32))], setup: .actpass)
    let senders = codecs.enumerated().map { index, codec in
        Sender(
            mid: String(index), codec: codec, ssrc: SSRC(UInt32(1000 + 2 * index)),
            retransmissionSSRC: codec == .opus ? nil : SSRC(UInt32(1001 + 2 * index)))
    }
    let offer = UpDescription.offer(
        sessionID: 1, version: 1, senders: senders, transport: transport, cname: "test")
    return Publish(sdp: offer.serialized(), streams: senders.map { .init(mid: $0.mid) })
}

extension RawClient {
    /// Publishes streams of these codecs. Returns their ids.
    func publish(_ codecs: [Codec], id: Int = 2) throws -> [Int] {
        sendMessage(.publish(publication(codecs)), id: id)
        let answer = try message { $0.id == id }
        guard case .published(let published) = answer.message else {
            Issue.record("\(answer)")
            return []
        }
        return published.streams.map(\.stream)
    }

    /// The error in the response to a request.
    func refusal(of message: ClientMessage, id: Int) throws -> String? {
        sendMessage(message, id: id)
        guard case .error(let problem) = try self.message(where: { $0.id == id }).message else { return nil }
        return problem.code
    }
}

internal import ArgumentParser
internal import Foundation
internal import RoomProtocol

/// How a load client enters a room, publishes and subscribes: our signalling, or that of another server.
///
/// Descriptions are SDP. An `answering` closure gets the server's offer; it returns the client's answer.
protocol RoomSignalling: Sendable {
    typealias Answering = @Sendable (String) async throws -> String

    /// Enters the room. A server whose participants always have a down session offers it now.
    func join(_ room: String, answering: Answering) async throws
    /// Publishes one stream; returns the server's answer and the number by which others subscribe to the stream.
    func publish(_ offer: String) async throws -> (answer: String, stream: Int)
    /// Returns the mids of the m-lines that carry the streams. A client calls it once.
    func subscribe(to streams: [Int], answering: Answering) async throws -> [String]
    func leave() async
}

/// A server and its signalling.
enum LoadServer: Sendable {
    case ours(ServerAccess, token: String)
    case janus(host: String, port: Int)

    /// - Parameters:
    ///   - ours: the line that `benchmarks serve` printed.
    ///   - janus: ADDRESS:PORT of the WebSocket interface of Janus.
    static func named(ours: String?, janus: String?) async throws -> LoadServer {
        if let ours {
            let access = try JSONDecoder().decode(ServerAccess.self, from: Data(ours.utf8))
            return .ours(access, token: try await access.token())
        }
        guard let parts = janus?.split(separator: ":"), parts.count == 2, let port = Int(parts[1]) else {
            throw ValidationError("Name a server with --ours or with --janus ADDRESS:PORT.")
        }
        return .janus(host: String(parts[0]), port: port)
    }

    var host: String {
        switch self {
        case .ours(let access, _): access.host
        case .janus(let host, _): host
        }
    }

    /// Whether participants get the audio of others without subscribing.
    var assignsAudio: Bool {
        switch self {
        case .ours: true
        case .janus: false
        }
    }

    /// - Parameter local: the address to connect from; nil for any. Our server has a limit for each.
    func connect(from local: String? = nil) async throws -> any RoomSignalling {
        switch self {
        case .ours(let access, let token): try await SignallingLine.open(access, token: token, from: local)
        case .janus(let host, let port): try await JanusLine.open(host: host, port: port)
        }
    }
}

internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOWebSocket
internal import RoomProtocol
internal import Synchronization

/// The signalling of one load client, as docs/signalling.md has it: requests with their answers, and the server's offer.
final class SignallingLine: Sendable {
    private struct State {
        var lastRequest = 0
        var waiting: [Int: CheckedContinuation<ServerMessage, any Error>] = [:]
        var offer: Description?
        var offerWaiter: CheckedContinuation<Description, any Error>?
        var ended = false
    }

    private typealias Connection = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    private let channel: any Channel
    private let state = Mutex(State())

    private init(_ channel: any Channel) { self.channel = channel }

    static func open(port: Int) async throws -> SignallingLine {
        let upgrade = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture { try negotiate(on: channel, port: port) }
            }
        let connection = try await upgrade.get()
        let line = SignallingLine(connection.channel)
        Task { await line.read(connection) }
        return line
    }

    private static func negotiate(on channel: any Channel, port: Int) throws -> EventLoopFuture<Connection> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Connection>(
            maxFrameSize: Signalling.maximumMessageLength,
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture { try Connection(wrappingChannelSynchronously: channel) }
            })
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET, uri: Signalling.webSocketPath,
            headers: HTTPHeaders([("Host", "127.0.0.1:\(port)"), ("Content-Length", "0")]))
        let configuration = NIOTypedHTTPClientUpgradeConfiguration(
            upgradeRequestHead: head, upgraders: [upgrader],
            notUpgradingCompletionHandler: { channel in
                channel.eventLoop.makeFailedFuture(BenchmarkError("The server refused the WebSocket."))
            })
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
            configuration: .init(upgradeConfiguration: configuration))
    }

    private func read(_ connection: Connection) async {
        try? await connection.executeThenClose { inbound, outbound in
            for try await frame in inbound {
                switch frame.opcode {
                case .text: take(Data(frame.unmaskedData.readableBytesView))
                case .ping:
                    try await outbound.write(
                        WebSocketFrame(fin: true, opcode: .pong, maskKey: .random(), data: frame.unmaskedData))
                default: break
                }
            }
        }
        end()
    }

    private func take(_ json: Data) {
        guard let envelope = try? Envelope<ServerMessage>(json: json) else { return }
        if let id = envelope.id {
            let waiter = state.withLock { $0.waiting.removeValue(forKey: id) }
            if case .error(let problem) = envelope.message {
                waiter?.resume(throwing: problem.error)
            } else {
                waiter?.resume(returning: envelope.message)
            }
        } else if case .offer(let description) = envelope.message {
            let waiter = state.withLock { state in
                state.offer = description
                defer { state.offerWaiter = nil }
                return state.offerWaiter
            }
            waiter?.resume(returning: description)
        }
    }

    private func end() {
        let (waiting, offerWaiter) = state.withLock { state in
            state.ended = true
            defer {
                state.waiting = [:]
                state.offerWaiter = nil
            }
            return (state.waiting, state.offerWaiter)
        }
        let error = BenchmarkError("The server closed the signalling connection.")
        for waiter in waiting.values { waiter.resume(throwing: error) }
        offerWaiter?.resume(throwing: error)
    }

    func request(_ message: ClientMessage) async throws -> ServerMessage {
        try await withCheckedThrowingContinuation { continuation in
            let id = state.withLock { state -> Int? in
                guard !state.ended else { return nil }
                state.lastRequest += 1
                state.waiting[state.lastRequest] = continuation
                return state.lastRequest
            }
            guard let id else {
                continuation.resume(throwing: BenchmarkError("The signalling connection has ended."))
                return
            }
            send(Envelope(id: id, message).json())
        }
    }

    func send(_ message: ClientMessage) { send(Envelope(message).json()) }

    /// The server's first offer of the down session.
    func offer() async throws -> Description {
        try await withCheckedThrowingContinuation { continuation in
            let offer = state.withLock { state -> Description? in
                if state.offer == nil { state.offerWaiter = continuation }
                return state.offer
            }
            if let offer { continuation.resume(returning: offer) }
        }
    }

    private func send(_ text: String) {
        let frame = WebSocketFrame(
            fin: true, opcode: .text, maskKey: .random(), data: channel.allocator.buffer(string: text))
        channel.writeAndFlush(frame, promise: nil)
    }
}

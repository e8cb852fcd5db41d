import Foundation
import NIOCore
import NIOEmbedded
import NIOWebSocket
import PeerIO
import PeerLoop
import PeerSession
import RTP
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import RoomServer
@testable import ServerCore

/// Many participants of one room, below the WebSocket: their messages go directly to the rooms, and all messages of the
/// server to them go through one channel, which counts them. Their media is real.
final class Crowd {
    let room: RoomName
    let wire: Wire
    private let server: RoomServer
    private let token: String
    private let loop: PeerIO.EventLoop
    private let connections: [SignallingConnection]
    private var sessions: [LoopBound<MediaSession>] = []

    init(_ count: Int, in server: RoomServer, token: String, room: String, loop: PeerIO.EventLoop) async throws {
        self.server = server
        self.token = token
        self.loop = loop
        self.room = try RoomName(room)
        let wire = Wire()
        self.wire = wire
        let channel = try await NIOAsyncTestingChannel { try $0.pipeline.syncOperations.addHandler(wire) }
        // Outside the range of WebSockets' numbers.
        connections = (0..<count).map { SignallingConnection(id: UInt64(1_000_000 + $0), channel: channel) }
    }

    var count: Int { connections.count }

    /// Sends a message of each participant. The response has the participant's index.
    private func send(_ message: (Int) -> ClientMessage, answered: Bool) {
        for (index, connection) in connections.enumerated() {
            let envelope = Envelope<ClientMessage>(id: answered ? index : nil, message(index))
            server.directory.received(ClientRequest(envelope), from: connection)
        }
    }

    func join() { send({ _ in .join(Join(token: token, room: room.text)) }, answered: false) }

    /// Publishes an audio stream of each participant, and waits until the media of all flows.
    func announceAudio() async throws {
        let (loop, count) = (loop, count)
        let offers = try await onLoop(loop) {
            Result {
                let certificate = try Certificate()
                return try (0..<count).map { _ in
                    let session = try MediaSession(loop: loop, role: .controlling, certificate: certificate)
                    return (LoopBound(session, loop: loop), session.offer([.opus]))
                }
            }
        }.get()
        sessions = offers.map(\.0)
        send({ .publish(offers[$0].1) }, answered: true)
        let (wire, all) = (self.wire, count)
        let areAnswered = await eventually(within: 60) { wire.published.count == all }
        try #require(areAnswered)
        let published = wire.published
        let sessions = self.sessions
        try await onLoop(loop) {
            Result {
                for (index, session) in sessions.enumerated() {
                    guard let answer = published[index] else { continue }
                    try session.value.connect(by: answer)
                }
            }
        }.get()
        let areSecured = await eventually(within: 60) {
            await onLoop(loop) { sessions.allSatisfy { $0.value.isSecured } }
        }
        try #require(areSecured)
    }

    /// Publishes audio of which no packet ever arrives.
    func announceUnheard() { send({ _ in .publish(publication([.opus])) }, answered: true) }

    /// Sends audio packets of one participant.
    func speak(_ numbers: Range<Int>, as index: Int) async {
        let session = sessions[index]
        await onLoop(loop) { session.value.send(numbers, as: .opus) }
    }

    /// Sends an audio packet of each participant.
    func speak(_ number: Int) async {
        let sessions = self.sessions
        await onLoop(loop) { for session in sessions { session.value.send(number..<(number + 1), as: .opus) } }
    }

    func leave() async {
        // The last ones first: they hold no audio slots, which would otherwise be reassigned each time.
        for connection in connections.reversed() { server.directory.disconnected(connection, lost: nil) }
        // Runs after everything that waits on the rooms' loop.
        _ = await server.busiestTurn
        let sessions = self.sessions
        await onLoop(loop) { for session in sessions { session.value.peer.close() } }
    }
}

/// Counts the messages of a server, and how many of them were encoded separately.
final class Wire: ChannelOutboundHandler, Sendable {
    typealias OutboundIn = WebSocketFrame

    private struct State {
        var frames = 0
        var encodings = 0
        var published: [Int: Published] = [:]
        /// Kept, so that its memory is not reused for another message.
        var last = ByteBuffer()
    }

    private let state = Mutex(State())

    var frames: Int { state.withLock { $0.frames } }
    var encodings: Int { state.withLock { $0.encodings } }
    var published: [Int: Published] { state.withLock { $0.published } }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let buffer = unwrapOutboundIn(data).data
        state.withLock { state in
            state.frames += 1
            if buffer.storagePointerIntegerValue == state.last.storagePointerIntegerValue { return }
            state.encodings += 1
            state.last = buffer
            guard buffer.readableBytesView.starts(with: Array(#"{"id":"#.utf8)),
                let envelope = try? Envelope<ServerMessage>(json: Data(buffer.readableBytesView)),
                case .published(let published) = envelope.message, let id = envelope.id
            else { return }
            state.published[id] = published
        }
        promise?.succeed()
    }

    func flush(context: ChannelHandlerContext) {}
}

extension ByteBuffer {
    /// The address of its memory, which copies share.
    fileprivate var storagePointerIntegerValue: UInt {
        withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) }
    }
}

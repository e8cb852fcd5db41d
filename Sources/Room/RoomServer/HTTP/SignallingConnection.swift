internal import NIOCore
internal import NIOWebSocket
internal import RoomProtocol
internal import ServerCore
internal import Synchronization

/// A client's WebSocket for the rooms. Callable on any thread.
final class SignallingConnection: ClientConnection, Sendable {
    /// The most messages that are not handled yet, or whose responses are not written yet. More end the connection.
    /// This also bounds the work that waits for NIO's thread.
    static let maximumUnhandled = 256

    let id: UInt64
    let place: ClientPlace
    private let channel: any Channel
    private let bound = Mutex<RoomHost?>(nil)
    private let unhandled = Atomic<Int>(0)
    private let joined = Atomic<Bool>(false)
    private let ending = Atomic<Bool>(false)
    let client: ClientAddress
    private let refusals: RefusalLog
    /// Called with the id of a participant for which the client sends a wrong secret.
    private let guessed: @Sendable (String) -> Void
    private let cause = Mutex<String?>(nil)

    init(
        id: UInt64, channel: any Channel, place: ClientPlace = .elsewhere, client: ClientAddress = ClientAddress(nil),
        refusals: RefusalLog = RefusalLog(), guessed: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.id = id
        self.channel = channel
        self.place = place
        self.client = client
        self.refusals = refusals
        self.guessed = guessed
    }

    /// The host of the room that the client joins or has joined. Nil before, and after a `join` that failed.
    var host: RoomHost? {
        get { bound.withLock { $0 } }
        set { bound.withLock { $0 = newValue } }
    }

    /// Queues a message. If a client does not read and more than 1 MiB waits, `WebSocketHandler` closes its connection.
    func send(_ message: ServerMessage, answering id: Int? = nil) {
        if case .error(let problem) = message, !hasJoined {
            refusals.write("join refused", problem.error, client, now: .current)
        }
        let channel = self.channel
        if channel.eventLoop.inEventLoop {
            channel.writeAndFlush(Self.frame(message, id, channel), promise: nil)
        } else {
            channel.eventLoop.execute { channel.writeAndFlush(Self.frame(message, id, channel), promise: nil) }
        }
    }

    /// Queues one message for many clients. NIO's thread encodes it once and shares its bytes. All connections belong
    /// to one server, whose single NIO thread keeps the order.
    static func send(_ message: ServerMessage, to connections: some Sequence<SignallingConnection>) {
        let channels = connections.map(\.channel)
        guard let first = channels.first else { return }
        first.eventLoop.execute {
            let frame = Self.frame(message, nil, first)
            for channel in channels { channel.writeAndFlush(frame, promise: nil) }
        }
    }

    private static func frame(_ message: ServerMessage, _ id: Int?, _ channel: any Channel) -> WebSocketFrame {
        let buffer = channel.allocator.buffer(string: Envelope(id: id, message).json())
        return WebSocketFrame(fin: true, opcode: .text, data: buffer)
    }

    static func broadcast(_ message: ServerMessage, to connections: [any ClientConnection]) {
        send(message, to: connections.lazy.compactMap { $0 as? SignallingConnection })
    }

    /// The reason for which the server ends the connection, for the log. Nil if the client does.
    var endCause: String? { cause.withLock { $0 } }

    /// Whether the client ended the connection by a farewell, or the server because of the client's fault. It cannot resume then.
    private let isFinal = Atomic<Bool>(false)
    var hasLeft: Bool { isFinal.load(ordering: .relaxed) }
    func willLeave() { isFinal.store(true, ordering: .relaxed) }

    /// Notes the reason before an end. The first one counts.
    func willEnd(because reason: String) { cause.withLock { $0 = $0 ?? reason } }

    /// Sends the reason, then closes.
    func close(_ closing: Closing) {
        send(.closed(closing))
        end(.normalClosure)
    }

    /// Whether the client has joined a room. It has to within `ClientLiveness.joinDeadline`.
    var hasJoined: Bool { joined.load(ordering: .relaxed) }
    func didNotJoin() { host = nil }
    func didGuess(at participant: String) { guessed(participant) }
    func didJoin() { joined.store(true, ordering: .relaxed) }
    /// Whether the connection is closing, so that further input is ignored.
    var isEnding: Bool { ending.load(ordering: .relaxed) }
    /// The connection has closed. Where a write meets the closed socket, NIO reports that from inside the read that led to
    /// the write, and goes on to hand over the rest of what was read.
    func didClose() { ending.store(true, ordering: .relaxed) }

    /// How long a client may take to read the last message before the connection closes.
    private static let lingering = TimeAmount.seconds(2)

    func end() { end(.normalClosure) }

    /// Closes after the queued messages.
    func end(_ code: WebSocketErrorCode) {
        guard !ending.exchange(true, ordering: .relaxed) else { return }
        var data = channel.allocator.buffer(capacity: 2)
        data.write(webSocketErrorCode: code)
        let channel = self.channel
        channel.writeAndFlush(WebSocketFrame(fin: true, opcode: .connectionClose, data: data)).whenComplete { _ in
            channel.close(promise: nil)
        }
        channel.eventLoop.scheduleTask(in: Self.lingering) { channel.close(promise: nil) }
    }

    /// Counts a message passed to the rooms. Returns false if too many wait.
    func beginHandling() -> Bool { unhandled.add(1, ordering: .relaxed).newValue <= Self.maximumUnhandled }
    /// Ends the count of a message. One with a response counts until NIO's thread has written the response.
    func endHandling(hasResponse: Bool) {
        if hasResponse {
            channel.eventLoop.execute { self.unhandled.subtract(1, ordering: .relaxed) }
        } else {
            unhandled.subtract(1, ordering: .relaxed)
        }
    }
}

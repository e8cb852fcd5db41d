internal import Foundation
internal import MediaGraph
internal import MediaNodes
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Accepts control clients of a running pipeline on a socket that only this user can open.
final class ControlServer: Sendable {
    /// More connections are refused.
    static let maximumConnections = 32

    private typealias Connection = NIOAsyncChannel<LineDecoder.InboundOut, ByteBuffer>

    let path: String
    private let pipeline: LiveRun
    private let listener: NIOAsyncChannel<Connection, Never>
    private let task = Mutex<Task<Void, Never>?>(nil)
    private let attached = Mutex<(channels: [any Channel], watchers: Int)>(([], 0))
    /// How long a client may take to read the last event.
    private static let farewellTimeout = Duration.milliseconds(500)
    /// Why the pipeline failed, for the last event.
    private let ending = Mutex<ControlProblem?>(nil)

    private init(
        path: String, pipeline: LiveRun, listener: NIOAsyncChannel<Connection, Never>
    ) {
        self.path = path
        self.pipeline = pipeline
        self.listener = listener
    }

    /// Listens at an unused path, with mode 0600.
    static func start(at path: String, for pipeline: LiveRun) async throws -> ControlServer {
        let listener: NIOAsyncChannel<Connection, Never>
        do {
            listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.backlog, value: 8)
                .childChannelOption(.allowRemoteHalfClosure, value: true)
                .bind(unixDomainSocketPath: path) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(
                            ByteToMessageHandler(LineDecoder(limit: ControlProtocol.maximumLineLength)))
                        return try Connection(wrappingChannelSynchronously: channel)
                    }
                }
        } catch {
            throw CommandFailure(
                code: "control.unavailable",
                "The control socket \(path) cannot be created: \(explain(error)). Set XDG_RUNTIME_DIR to a folder of "
                    + "your own.")
        }
        // The folder is private, so no other user connected before this.
        chmod(path, 0o600)
        let server = ControlServer(path: path, pipeline: pipeline, listener: listener)
        server.task.withLock { $0 = Task { await server.accept() } }
        return server
    }

    /// Sends the `ended` event with its cause to all clients and removes the socket.
    func stop(_ problem: ControlProblem? = nil) async {
        ending.withLock { $0 = problem }
        unlink(path)
        let task = task.withLock { $0 }
        task?.cancel()
        let timeout = Task {
            try await Task.sleep(for: Self.farewellTimeout)
            for channel in attached.withLock({ $0.channels }) { channel.close(promise: nil) }
        }
        await task?.value
        timeout.cancel()
    }

    private func accept() async {
        do {
            try await listener.executeThenClose { connections in
                await withDiscardingTaskGroup { group in
                    do {
                        for try await connection in connections {
                            group.addTask { await self.serve(connection) }
                        }
                    } catch {
                        // The listener failed; existing connections stay.
                    }
                    group.cancelAll()
                }
            }
        } catch {
            // The socket was closed already.
        }
    }

    private func serve(_ connection: Connection) async {
        let isAccepted = attached.withLock { attached in
            attached.channels.append(connection.channel)
            return attached.channels.count <= Self.maximumConnections
        }
        defer { attached.withLock { $0.channels.removeAll { $0 === connection.channel } } }
        do {
            try await connection.executeThenClose { inbound, outbound in
                guard isAccepted else {
                    return try await outbound.write(
                        refusal(
                            code: "control.busy",
                            "\(Self.maximumConnections) clients are attached, which is the limit. Close one of them."))
                }
                let visit = Visit(server: self, outbound: outbound)
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { await visit.answer(inbound) }
                    group.addTask { await visit.report() }
                    await group.next()
                    group.cancelAll()
                }
                // A cancelled task cannot write, so another task sends the last event.
                if Task.isCancelled { await Task { await visit.sayGoodbye(self.ending.withLock { $0 }) }.value }
            }
        } catch {
            // The client disconnected.
        }
    }

    fileprivate func watch(_ isWatching: Bool) {
        attached.withLock { attached in
            attached.watchers += isWatching ? 1 : -1
            if attached.watchers == (isWatching ? 1 : 0) { pipeline.setWatched(isWatching) }
        }
    }

    private func refusal(code: String, _ message: String) -> ByteBuffer {
        ByteBuffer(
            string: ControlProtocol.line(
                ControlAnswer<Done>(id: nil, error: ControlProblem(code: code, message))))
    }

    // MARK: - One client

    /// Replies to one request after another, and sends statistics concurrently while the client watches.
    private final class Visit: Sendable {
        let server: ControlServer
        let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
        private let wishes: AsyncStream<Double?>
        private let wish: AsyncStream<Double?>.Continuation

        init(server: ControlServer, outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>) {
            self.server = server
            self.outbound = outbound
            (wishes, wish) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        }

        func answer(_ inbound: NIOAsyncChannelInboundStream<LineDecoder.InboundOut>) async {
            do {
                for try await frame in inbound {
                    guard case .line(let line) = frame else {
                        return try await outbound.write(
                            server.refusal(
                                code: "control.too-long",
                                "The line is longer than \(ControlProtocol.maximumLineLength) bytes. Send shorter "
                                    + "lines."))
                    }
                    if line.allSatisfy({ $0 == 32 || $0 == 13 || $0 == 9 }) { continue }
                    try await outbound.write(ByteBuffer(string: answer(line)))
                }
            } catch {
                // The client disconnected.
            }
        }

        private func answer(_ line: [UInt8]) async -> String {
            switch ControlEnvelope.read(line) {
            case .failure(let failure):
                return ControlProtocol.line(ControlAnswer<Done>(id: failure.id, error: failure.problem))
            case .success(let envelope):
                do throws(MediaError) {
                    return try await answer(envelope)
                } catch {
                    return ControlProtocol.line(ControlAnswer<Done>(id: envelope.id, error: ControlProblem(error)))
                }
            }
        }

        private func answer(_ envelope: ControlEnvelope) async throws(MediaError) -> String {
            func line(_ body: some Encodable) -> String {
                ControlProtocol.line(ControlAnswer(id: envelope.id, result: body))
            }
            let pipeline = server.pipeline
            switch envelope.request {
            case .status: return line(pipeline.status)
            case .graph: return line(pipeline.graph.withoutSecrets(KnownNodes.registry))
            case .plan: return line(pipeline.plan.withoutSecrets(KnownNodes.registry))
            case .watch(let every):
                wish.yield(every)
                return line(Done())
            case .unwatch:
                wish.yield(nil)
                return line(Done())
            case .apply(let graph, let deadline):
                return line(try await pipeline.apply(graph, deadline: deadline))
            case .set(let node, let setting, let value):
                return line(try await pipeline.set(setting, of: node, to: value))
            case .check(let node, let setting, let value):
                try pipeline.check(setting, of: node, to: value)
                return line(Done())
            }
        }

        /// Sends statistics while the client watches. A client that reads slowly receives fewer: each write waits for
        /// room.
        func report() async {
            var reporting: Task<Void, Never>?
            func end() async {
                reporting?.cancel()
                await reporting?.value
            }
            // Ends when this task is cancelled.
            for await every in wishes {
                await end()
                reporting = every.map { every in Task { await self.report(every: .milliseconds(Int(every * 1000))) } }
            }
            await end()
        }

        private func report(every interval: Duration) async {
            server.watch(true)
            defer { server.watch(false) }
            do {
                while true {
                    let event = ControlEvent(event: .statistics, statistics: server.pipeline.statistics)
                    try await outbound.write(ByteBuffer(string: ControlProtocol.line(event)))
                    try await Task.sleep(for: interval)
                }
            } catch {
                // The client disconnected or stopped watching.
            }
        }

        func sayGoodbye(_ problem: ControlProblem?) async {
            let event = ControlEvent(event: .ended, error: problem)
            try? await outbound.write(ByteBuffer(string: ControlProtocol.line(event)))
        }
    }
}

/// A short description of a socket error.
func explain(_ error: any Error) -> String {
    if let error = error as? IOError { return String(cString: strerror(error.errnoCode)).lowercased() }
    if case .unixDomainSocketPathTooLong = error as? SocketAddressError { return "its path is too long" }
    return "\(error)"
}

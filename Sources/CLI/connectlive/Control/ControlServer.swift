internal import Foundation
internal import MediaGraph
internal import MediaNodes
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// A pipeline as those see it who attach to it.
protocol ControlledPipeline: Sendable {
    var status: PipelineStatus { get }
    var graph: MediaGraph { get }
    var plan: GraphPlan { get }
    var statistics: PipelineStatistics { get }
    /// Counting costs something: it is on only while somebody watches.
    func setWatched(_ isWatched: Bool)
    func apply(_ graph: MediaGraph, deadline: Double?) async throws(MediaError) -> AppliedEdit
    func set(_ setting: String, of node: String, to value: SettingValue) async throws(MediaError) -> AppliedSetting
}

/// Lets others attach to a running pipeline, by a socket that only this user can open.
final class ControlServer: Sendable {
    /// More attach at once for no good reason.
    static let maximumConnections = 32

    private typealias Connection = NIOAsyncChannel<LineDecoder.InboundOut, ByteBuffer>

    let path: String
    private let pipeline: any ControlledPipeline
    private let listener: NIOAsyncChannel<Connection, Never>
    private let task = Mutex<Task<Void, Never>?>(nil)
    private let attached = Mutex<(channels: [any Channel], watchers: Int)>(([], 0))
    /// For those who do not read what they are told at the end.
    private static let patience = Duration.milliseconds(500)
    /// Why the pipeline ended, for those who are attached then.
    private let ending = Mutex<ControlProblem?>(nil)

    private init(
        path: String, pipeline: any ControlledPipeline, listener: NIOAsyncChannel<Connection, Never>
    ) {
        self.path = path
        self.pipeline = pipeline
        self.listener = listener
    }

    /// Listens at a path where nothing is, with mode 0600.
    static func start(at path: String, for pipeline: any ControlledPipeline) async throws -> ControlServer {
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
                "The control socket \(path) cannot be made (\(explain(error))): set XDG_RUNTIME_DIR to a folder of your "
                    + "own.")
        }
        // Nobody else may enter its folder, so that nobody came in before this.
        chmod(path, 0o600)
        let server = ControlServer(path: path, pipeline: pipeline, listener: listener)
        server.task.withLock { $0 = Task { await server.accept() } }
        return server
    }

    /// Tells those who are attached that the pipeline has ended, and why, and removes the socket.
    func stop(_ problem: ControlProblem? = nil) async {
        ending.withLock { $0 = problem }
        unlink(path)
        let task = task.withLock { $0 }
        task?.cancel()
        let impatience = Task {
            try await Task.sleep(for: Self.patience)
            for channel in attached.withLock({ $0.channels }) { channel.close(promise: nil) }
        }
        await task?.value
        impatience.cancel()
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
                        // The listener has failed; those who are attached stay.
                    }
                    group.cancelAll()
                }
            }
        } catch {
            // Closing a closed socket.
        }
    }

    private func serve(_ connection: Connection) async {
        let isWelcome = attached.withLock { attached in
            attached.channels.append(connection.channel)
            return attached.channels.count <= Self.maximumConnections
        }
        defer { attached.withLock { $0.channels.removeAll { $0 === connection.channel } } }
        do {
            try await connection.executeThenClose { inbound, outbound in
                guard isWelcome else {
                    return try await outbound.write(
                        refusal(
                            code: "control.busy", "\(Self.maximumConnections) are attached already: end one of them."))
                }
                let visit = Visit(server: self, outbound: outbound)
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { await visit.answer(inbound) }
                    group.addTask { await visit.report() }
                    await group.next()
                    group.cancelAll()
                }
                // A cancelled task may not write any more; another one may.
                if Task.isCancelled { await Task { await visit.sayGoodbye(self.ending.withLock { $0 }) }.value }
            }
        } catch {
            // Whoever was attached has gone.
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

    // MARK: - One who is attached

    /// Answers one request after the other, and reports beside that while it is asked to.
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
                                "A line may have \(ControlProtocol.maximumLineLength) bytes; this connection is over."))
                    }
                    if line.allSatisfy({ $0 == 32 || $0 == 13 || $0 == 9 }) { continue }
                    try await outbound.write(ByteBuffer(string: answer(line)))
                }
            } catch {
                // Whoever was attached has gone.
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
            }
        }

        /// Sends statistics for as long as somebody wants them. Who does not read them gets fewer: each waits until
        /// there is room.
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
                // Nobody watches any more.
            }
        }

        func sayGoodbye(_ problem: ControlProblem?) async {
            let event = ControlEvent(event: .ended, error: problem)
            try? await outbound.write(ByteBuffer(string: ControlProtocol.line(event)))
        }
    }
}

/// What went wrong with a socket, in words.
func explain(_ error: any Error) -> String {
    if let error = error as? IOError { return String(cString: strerror(error.errnoCode)).lowercased() }
    if case .unixDomainSocketPathTooLong = error as? SocketAddressError { return "its path is too long" }
    return "\(error)"
}

internal import Foundation
internal import MediaGraph
internal import NIOCore
internal import NIOPosix

/// The client of a `ControlServer`. It sends one request at a time.
final class ControlClient {
    private typealias Lines = NIOAsyncChannelInboundStream<LineDecoder.InboundOut>

    let path: String
    private var lines: Lines.AsyncIterator
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    private var lastID = 0
    /// Events that arrived before a reply.
    private var events: [ControlEvent] = []

    private init(path: String, lines: Lines.AsyncIterator, outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>) {
        self.path = path
        self.lines = lines
        self.outbound = outbound
    }

    /// Attaches while `body` runs. `name` is a process number or a socket path. Nil means the only running pipeline.
    ///
    /// - Parameter flag: the option for the name. Nil if it is an argument.
    static func attached<Result>(
        to name: String?, by flag: String? = nil, _ body: (ControlClient) async throws -> Result
    ) async throws -> Result {
        let path = try RunningPipelines().find(name, by: flag)
        let channel: NIOAsyncChannel<LineDecoder.InboundOut, ByteBuffer>
        do {
            channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(unixDomainSocketPath: path) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(
                            ByteToMessageHandler(LineDecoder(limit: ControlProtocol.maximumLineLength)))
                        return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                    }
                }
        } catch {
            throw CommandFailure(
                code: "control.unreachable",
                "Cannot connect to \(path): \(explain(error)). Check that the pipeline is still running.")
        }
        return try await channel.executeThenClose { inbound, outbound in
            try await body(ControlClient(path: path, lines: inbound.makeAsyncIterator(), outbound: outbound))
        }
    }

    /// Sends a request and returns its result. Throws the server's problem if it refuses.
    func ask<Body: Decodable>(_ request: ControlRequest, for type: Body.Type = Body.self) async throws -> Body {
        lastID += 1
        let id = lastID
        let line = ControlProtocol.line(ControlEnvelope(id: id, request: request))
        guard line.utf8.count <= ControlProtocol.maximumLineLength else {
            throw ControlProblem(
                code: "control.too-long",
                "The graph is larger than 1 MiB. Split it into several pipelines.")
        }
        do { try await outbound.write(ByteBuffer(string: line)) } catch { throw gone }
        while true {
            let line = try await next()
            if let event = try? JSONDecoder().decode(ControlEvent.self, from: line) {
                events.append(event)
                continue
            }
            let answer = try decode(Answer<Body>.self, line)
            if let problem = answer.error { throw problem }
            guard answer.id == id, let result = answer.result else { throw unreadable }
            return result
        }
    }

    /// Sends a request that has no result.
    func tell(_ request: ControlRequest) async throws { _ = try await ask(request, for: Done.self) }

    /// The next event. A watched pipeline sends events until it ends.
    func nextEvent() async throws -> ControlEvent {
        if !events.isEmpty { return events.removeFirst() }
        return try decode(ControlEvent.self, try await next())
    }

    private struct Answer<Body: Decodable>: Decodable {
        var id: Int?
        var result: Body?
        var error: ControlProblem?
    }

    private func next() async throws -> Data {
        let frame: LineDecoder.InboundOut?
        do { frame = try await lines.next() } catch { throw gone }
        switch frame {
        case .line(let line): return Data(line)
        case .tooLong: throw unreadable
        case nil: throw gone
        }
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ line: Data) throws -> Value {
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        guard let value = try? decoder.decode(type, from: line) else { throw unreadable }
        return value
    }

    private var gone: CommandFailure {
        CommandFailure(code: "control.lost", "The pipeline at \(path) ended, which closed the connection.")
    }

    private var unreadable: CommandFailure {
        CommandFailure(
            code: "control.malformed",
            "The reply from \(path) is malformed. Check that both programs have the same version.")
    }
}

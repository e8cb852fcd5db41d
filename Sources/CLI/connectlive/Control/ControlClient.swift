internal import Foundation
internal import MediaGraph
internal import NIOCore
internal import NIOPosix

/// The other end of a `ControlServer`: asks one thing after the other.
final class ControlClient {
    private typealias Lines = NIOAsyncChannelInboundStream<LineDecoder.InboundOut>

    let path: String
    private var lines: Lines.AsyncIterator
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    private var lastID = 0
    /// Events that came while an answer was waited for.
    private var events: [ControlEvent] = []

    private init(path: String, lines: Lines.AsyncIterator, outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>) {
        self.path = path
        self.lines = lines
        self.outbound = outbound
    }

    /// Attaches for as long as the body takes. `name` is a process number or a socket; without one there must be
    /// exactly one pipeline.
    static func attached<Result>(
        to name: String?, _ body: (ControlClient) async throws -> Result
    ) async throws -> Result {
        let path = try RunningPipelines().find(name)
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
                "Nothing answers at \(path) (\(explain(error))): is the pipeline still running?")
        }
        return try await channel.executeThenClose { inbound, outbound in
            try await body(ControlClient(path: path, lines: inbound.makeAsyncIterator(), outbound: outbound))
        }
    }

    /// Asks, and waits for the answer. A refusal is thrown as it came.
    func ask<Body: Decodable>(_ request: ControlRequest, for type: Body.Type = Body.self) async throws -> Body {
        lastID += 1
        let id = lastID
        let line = ControlProtocol.line(ControlEnvelope(id: id, request: request))
        guard line.utf8.count <= ControlProtocol.maximumLineLength else {
            throw ControlProblem(code: "control.too-long", "The graph is too long to be sent in one line.")
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

    /// Does as it is asked, without more to say.
    func tell(_ request: ControlRequest) async throws { _ = try await ask(request, for: Done.self) }

    /// The next event; those of a pipeline that is watched come for as long as it runs.
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
        CommandFailure(code: "control.lost", "The pipeline at \(path) has ended, and the connection with it.")
    }

    private var unreadable: CommandFailure {
        CommandFailure(
            code: "control.malformed",
            "What answers at \(path) says something that cannot be understood: is it a pipeline of this version?")
    }
}

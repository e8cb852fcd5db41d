internal import Foundation
internal import NIOCore
internal import NIOPosix

/// Ports and datagrams of this machine.
struct Ports: Sendable {
    enum Transport: String, Sendable { case udp, tcp }

    enum Refusal: Sendable, Equatable {
        case inUse
        /// A plain reason, such as "permission denied".
        case other(String)
    }

    /// Opens a port and closes it again. Nil if that succeeds. Port 0 means any free port.
    var open: @Sendable (Transport, _ host: String, _ port: Int) async -> Refusal?
    /// The program that uses a port, such as "python3 (process 4711)". Nil if this user may not see it.
    var user: @Sendable (Transport, _ port: Int) -> String?
    /// Sends a datagram over loopback. Returns when it has arrived, which may be never.
    var loopback: @Sendable () async throws -> Void

    static let system = Ports(
        open: { transport, host, port in await opened(transport, host, port) },
        user: { transport, port in SocketTable.program(on: port, transport) },
        loopback: {
            let group = MultiThreadedEventLoopGroup.singleton
            let echo = try await DatagramBootstrap(group: group)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(EchoHandler())
                    }
                }.bind(host: "127.0.0.1", port: 0).get()
            defer { echo.close(promise: nil) }
            guard let address = echo.localAddress else { return }
            let sent = Array("connectlive doctor".utf8)
            _ = try await DatagramQuestion.ask(sent, at: address) { $0 == sent ? true : nil }
        })

    private static func opened(_ transport: Transport, _ host: String, _ port: Int) async -> Refusal? {
        let group = MultiThreadedEventLoopGroup.singleton
        do {
            let channel: any Channel
            switch transport {
            case .udp: channel = try await DatagramBootstrap(group: group).bind(host: host, port: port).get()
            case .tcp:
                // As servers do, so that connections that have ended do not count.
                channel = try await ServerBootstrap(group: group)
                    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1).bind(host: host, port: port).get()
            }
            try? await channel.close()
            return nil
        } catch {
            return (error as? IOError)?.errnoCode == EADDRINUSE ? .inUse : .other(explain(error))
        }
    }
}

/// Sends each datagram back.
private final class EchoHandler: ChannelInboundHandler, Sendable {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>
    typealias OutboundOut = AddressedEnvelope<ByteBuffer>

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.writeAndFlush(data, promise: nil)
    }
}

/// One datagram and the response to it, from a socket of its own.
enum DatagramQuestion {
    /// The first retransmission follows after this time (RFC 8489, section 6.2.1).
    private static let interval = Duration.milliseconds(500)

    /// Sends `bytes` again and again until a response is accepted. Returns what `accept` makes of that response. Without a
    /// response, it ends with its task. Throws an `IOError` with ECONNREFUSED if an ICMP message says that the port is
    /// closed: a connected socket learns that.
    static func ask<Answer: Sendable>(
        _ bytes: [UInt8], at address: SocketAddress, accept: @escaping @Sendable ([UInt8]) -> Answer?
    ) async throws -> Answer {
        let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(to: address) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<AddressedEnvelope<ByteBuffer>, ByteBuffer>(
                        wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { arriving, leaving in
            try await withThrowingTaskGroup(of: Answer?.self) { group in
                group.addTask {
                    while true {
                        try await leaving.write(ByteBuffer(bytes: bytes))
                        try await Task.sleep(for: interval)
                    }
                }
                group.addTask {
                    for try await datagram in arriving {
                        if let answer = accept(Array(datagram.data.readableBytesView)) { return answer }
                    }
                    return nil
                }
                defer { group.cancelAll() }
                guard let answer = try await group.next() ?? nil else { throw CancellationError() }
                return answer
            }
        }
    }
}

/// The sockets that the kernel lists.
enum SocketTable {
    /// The program that has bound a port. Nil for a free port, and for a program of another user.
    static func program(on port: Int, _ transport: Ports.Transport, procfs: String = "/proc") -> String? {
        let files = ["\(transport)", "\(transport)6"].compactMap {
            try? String(contentsOfFile: "\(procfs)/net/\($0)", encoding: .utf8)
        }
        let sockets = Set(files.flatMap { inodes(in: $0, on: port, transport) }.map { "socket:[\($0)]" })
        guard !sockets.isEmpty else { return nil }
        let manager = FileManager.default
        for process in ((try? manager.contentsOfDirectory(atPath: procfs)) ?? []) where Int(process) != nil {
            let folder = "\(procfs)/\(process)/fd"
            let descriptors = (try? manager.contentsOfDirectory(atPath: folder)) ?? []
            let isOwner = descriptors.contains { descriptor in
                (try? manager.destinationOfSymbolicLink(atPath: "\(folder)/\(descriptor)")).map(sockets.contains)
                    ?? false
            }
            guard isOwner else { continue }
            let name = (try? String(contentsOfFile: "\(procfs)/\(process)/comm", encoding: .utf8)) ?? "a program"
            return "\(name.trimmingCharacters(in: .whitespacesAndNewlines)) (process \(process))"
        }
        return nil
    }

    /// The inodes of the sockets that have bound a port and, for TCP, listen: see proc(5).
    static func inodes(in table: String, on port: Int, _ transport: Ports.Transport) -> [String] {
        let listening = "0A"
        return table.split(separator: "\n").dropFirst().compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 9, let number = fields[1].split(separator: ":").last,
                Int(number, radix: 16) == port, transport == .udp || fields[3] == listening
            else { return nil }
            return String(fields[9])
        }
    }
}

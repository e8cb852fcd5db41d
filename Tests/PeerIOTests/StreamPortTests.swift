import Glibc
import ICELite
import PeerSession
import RTP
import Testing
import TestSupport

@testable import PeerIO
import PeerLoop

/// A TCP connection to loopback whose datagrams have frames (RFC 4571). Nothing of it waits.
final class FramedStream {
    let descriptor: Int32
    private var bytes: [UInt8] = []
    /// Whether the other end has closed the connection.
    private(set) var isOver = false

    init(port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = loopbackAddress(port: port)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(result == 0)
    }

    deinit { Glibc.close(descriptor) }

    func send(_ datagram: [UInt8]) { sendRaw([UInt8(datagram.count >> 8), UInt8(datagram.count & 0xff)] + datagram) }

    func sendRaw(_ bytes: [UInt8]) { _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }

    /// The next datagram that has arrived as a whole.
    func receive() -> [UInt8]? {
        var part = [UInt8](repeating: 0, count: 4096)
        let length = recv(descriptor, &part, part.count, Int32(MSG_DONTWAIT))
        if length == 0 || length < 0 && errno != EAGAIN { isOver = true }
        if length > 0 { bytes += part[..<length] }
        guard bytes.count >= 2 else { return nil }
        let end = 2 + Int(bytes[0]) << 8 + Int(bytes[1])
        guard bytes.count >= end else { return nil }
        defer { bytes.removeFirst(end) }
        return Array(bytes[2..<end])
    }

    var hasEnded: Bool {
        while receive() != nil {}
        return isOver
    }
}

/// A media port with TCP on a loop of its own for the length of a test.
private func withStreamPort(
    consent: TimeInterval = MediaPort.consent, proofTime: TimeInterval = StreamListener.proofTime,
    _ body: (LoopBound<MediaPort>, UInt16) async throws -> Void
) async throws {
    let loop = EventLoop(name: "port")
    let port = try await onLoop(loop) {
        Result { () throws(TransportError) in
            LoopBound(
                try MediaPort(
                    loop: loop, address: "127.0.0.1", port: 0, tcpPort: 0, consent: consent, proofTime: proofTime),
                loop: loop)
        }
    }.get()
    let number = await onLoop(loop) { port.value.tcpNumber ?? 0 }
    let result: Result<Void, any Error>
    do { result = .success(try await body(port, number)) } catch { result = .failure(error) }
    await onLoop(loop) { port.value.close() }
    loop.shutdown()
    try result.get()
}

private func streams(_ port: LoopBound<MediaPort>) async -> Int {
    await onLoop(port.loop) { port.value.statistics.streams }
}

@Suite(.serialized)
struct StreamPortTests {
    @Test func `a client connects over TCP, and media arrives in frames`() async throws {
        try await withStreamPort { port, number in
            let client = try await BareClient(on: port, certificate: try Certificate())
            let candidate = try #require(client.local.candidates.last)
            #expect(candidate.contains(" tcp ") && candidate.hasSuffix(" \(number) typ host tcptype passive"))
            client.stream = try FramedStream(port: number)
            try #require(await client.connect())
            let server = client.server
            let pair = await onLoop(port.loop) { server.value.peer.selectedPair }
            #expect(pair?.local == "127.0.0.1:\(number)")
            await send(0..<20, via: sender(at: server), of: server)
            #expect(await client.receives(20))
            await client.close()
        }
    }

    @Test func `frames may arrive byte by byte, and several at once`() async throws {
        try await withStreamPort { port, number in
            let client = try await BareClient(on: port, certificate: try Certificate())
            let stream = try FramedStream(port: number)
            func framed(_ bytes: [UInt8]) -> [UInt8] { [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xff)] + bytes }
            for byte in framed(client.check()) {
                stream.sendRaw([byte])
                await onLoop(port.loop) {}
            }
            #expect(await eventually { stream.receive() != nil })
            stream.sendRaw(framed(client.check()) + [0, 0] + framed(client.check()) + framed([1, 2, 3]))
            for _ in 0..<2 { #expect(await eventually { stream.receive() != nil }) }
            #expect(!stream.isOver)
            await client.close()
        }
    }

    @Test func `a connection without an authenticated check ends after its time, and one with a check stays`()
        async throws
    {
        try await withStreamPort(proofTime: .milliseconds(100)) { port, number in
            let client = try await BareClient(on: port, certificate: try Certificate())
            let (silent, lying, good) = (
                try FramedStream(port: number), try FramedStream(port: number), try FramedStream(port: number)
            )
            good.send(client.check())
            #expect(await eventually { good.receive() != nil })
            #expect(
                await eventually {
                    // Checks with a wrong password keep nothing open.
                    lying.send(client.check(password: "wrong password, twenty-two"))
                    return silent.hasEnded && lying.hasEnded
                })
            #expect(await streams(port) == 1)
            #expect(!good.hasEnded)
            await client.close()
        }
    }

    @Test func `a connection that has proved itself and falls silent ends with its consent`() async throws {
        try await withStreamPort(consent: .milliseconds(200)) { port, number in
            let client = try await BareClient(on: port, certificate: try Certificate())
            let stream = try FramedStream(port: number)
            stream.send(client.check())
            #expect(await eventually { stream.receive() != nil })
            #expect(await eventually { stream.hasEnded })
            #expect(await streams(port) == 0)
            await client.close()
        }
    }

    @Test func `a frame that is longer than a packet ends the connection`() async throws {
        try await withStreamPort { port, number in
            let stream = try FramedStream(port: number)
            stream.sendRaw([0xff, 0xff, 1])
            #expect(await eventually { stream.hasEnded })
            #expect(await streams(port) == 0)
        }
    }

    @Test func `an address has a limited number of connections`() async throws {
        try await withStreamPort { port, number in
            let all = try (0..<(StreamListener.limitPerNetwork + 10)).map { _ in try FramedStream(port: number) }
            #expect(await eventually { all.count { $0.hasEnded } == 10 })
            #expect(await streams(port) == StreamListener.limitPerNetwork)
        }
    }

    @Test func `a client that reads slowly loses whole frames, and the port keeps nothing for it`() async throws {
        try await withStreamPort { port, number in
            let client = try await BareClient(on: port, certificate: try Certificate())
            client.stream = try FramedStream(port: number)
            try #require(await client.connect())
            let sender = await sender(at: client.server)
            // More than all queues of the kernel hold, read in pieces, so that it often takes a part of a frame.
            for round in 0..<10 {
                await send(round * 500..<(round + 1) * 500, via: sender, of: client.server)
                for _ in 0..<40 { client.exchangeOne() }
            }
            let refused = await onLoop(port.loop) { port.value.statistics.streamsRefused }
            #expect(refused > 100)
            let server = client.server
            #expect(await onLoop(port.loop) { server.value.peer.statistics.datagramsRefused } == refused)
            #expect(
                await eventually {
                    let before = client.received
                    client.exchange()
                    return client.received == before
                })
            // Each frame was a whole one, so later ones are understood too.
            let before = client.received
            await send(5000..<5050, via: sender, of: client.server)
            #expect(await client.receives(before + 50))
            #expect(client.stream?.isOver == false)
            await client.close()
        }
    }

    @Test func `a connection moves to the loop of its session`() async throws {
        let loops = [EventLoop(name: "a"), EventLoop(name: "b")]
        let group = PortGroup(2)
        var ports: [LoopBound<MediaPort>] = []
        for (place, loop) in loops.enumerated() {
            let first = ports.first
            let numbers: (UInt16, UInt16) =
                if let first { await onLoop(first.loop) { (first.value.number, first.value.tcpNumber ?? 0) } } else {
                    (0, 0)
                }
            ports.append(
                try await onLoop(loop) {
                    Result { () throws(TransportError) in
                        LoopBound(
                            try MediaPort(
                                loop: loop, address: "127.0.0.1", port: numbers.0, tcpPort: numbers.1, group: group,
                                place: place), loop: loop)
                    }
                }.get())
        }
        let number = await onLoop(loops[0]) { [ports] in ports[0].value.tcpNumber ?? 0 }
        let client = try await BareClient(on: ports[1], certificate: try Certificate())
        client.stream = try FramedStream(port: number)
        try #require(await client.connect())
        let server = client.server
        await send(0..<20, via: sender(at: server), of: server)
        #expect(await client.receives(20))
        #expect(await streams(ports[0]) == 0)
        #expect(await streams(ports[1]) == 1)
        await client.close()
        for port in ports { await onLoop(port.loop) { port.value.close() } }
        for loop in loops { loop.shutdown() }
    }
}

private func sender(at server: LoopBound<End>) async -> SenderID {
    await onLoop(server.loop) {
        server.value.peer.addSender(SenderConfiguration(ssrc: Call.video, clockRate: 90000))
    }
}

/// Sends packets of 1000 bytes with these numbers from the port's end.
private func send(_ numbers: Range<Int>, via sender: SenderID, of server: LoopBound<End>) async {
    for first in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 50) {
        await onLoop(server.loop) {
            for number in first..<min(first + 50, numbers.upperBound) {
                var packet = PacketBuffer()
                _ = packet.assign(rtp(number, type: 96, ssrc: 1, length: 1000))
                guard let header = RTPHeader(parsing: packet) else { continue }
                server.value.peer.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender)
            }
        }
    }
}

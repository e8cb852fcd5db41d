import ICELite
import RTP
import Testing
import TestSupport

@testable import PeerIO
import PeerLoop

/// Two loops that share one UDP port.
@Suite(.serialized)
struct PortGroupTests {
    @Test(arguments: [0, 1], ["127.0.0.1", "0.0.0.0"])
    func `a call works whichever loop receives its datagrams`(receiver: Int, address: String) async throws {
        try await withGroup(at: address) { ports in
            await onLoop(ports[receiver].loop) { ports[receiver].value.steer(to: receiver) }
            for port in ports {
                var options = Call.Options()
                options.answererPort = port
                let call = try await Call.begin(on: port.loop, options)
                try #require(await call.isSecured())
                await call.sendVideo(300)
                await call.sendAudio(20)
                #expect(await eventually { await call.videoReceived() == Array(0..<300) })
                #expect(await eventually { await call.audioReceived() == 20 })
                await call.close()
            }
            let counts = await handedOver(ports)
            // The whole call on the other loop, and nothing of the one on this loop.
            #expect(counts[receiver] > 300)
            #expect(counts[1 - receiver] == 0)
        }
    }

    @Test func `the loops of a group have one port number, and no other program can use it`() async throws {
        try await withGroup { ports in
            let number = await onLoop(ports[0].loop) { ports[0].value.number }
            #expect(await onLoop(ports[1].loop) { ports[1].value.number } == number)
            let error = await onLoop(ports[0].loop) {
                Result { () throws(TransportError) in
                    try MediaPort(
                        loop: ports[0].loop, address: "127.0.0.1", port: number, group: PortGroup(2)
                    ).close()
                }
            }
            #expect(throws: TransportError.self) { try error.get() }
        }
    }

    @Test func `a call goes on while strangers flood its loop with checks through another`() async throws {
        try await withGroup { ports in
            await onLoop(ports[0].loop) { ports[0].value.steer(to: 0) }
            var options = Call.Options()
            options.answererPort = ports[1]
            let call = try await Call.begin(on: ports[1].loop, options)
            try #require(await call.isSecured())
            let stranger = try Stranger(port: await onLoop(ports[0].loop) { ports[0].value.number })
            // USERNAME is B, the place of the second loop, then an unknown ufrag.
            let username = Array("Bnobody:x".utf8)
            let padded = username + Array(repeating: 0, count: (4 - username.count % 4) % 4)
            let check: [UInt8] =
                [0, 1, 0, UInt8(4 + padded.count), 0x21, 0x12, 0xa4, 0x42] + Array(repeating: 9, count: 12)
                + [0, 6, 0, UInt8(username.count)] + padded
            let before = await onLoop(ports[1].loop) { ports[1].value.statistics.ignored }
            for round in 0..<20 {
                for _ in 0..<50 { stranger.send(check) }
                await call.sendVideo(5, from: 5 * round)
            }
            #expect(await eventually { await call.videoReceived() == Array(0..<100) })
            // All were looked at, or had no room. None was answered.
            #expect(
                await eventually {
                    let statistics = await onLoop(ports[1].loop) { ports[1].value.statistics }
                    return statistics.ignored - before + statistics.notTakenOver == 1000
                })
            #expect(!stranger.hasAnswer)
            await call.close()
        }
    }

    @Test func `what another loop hands over to a port that waits for its next turn is handled`() async throws {
        let clock = SlowClock()
        let loop = EventLoop(name: "slow", turnClock: { clock.read() })
        let port = try await onLoop(loop) {
            clock.loop = loop
            return Result { () throws(TransportError) in
                LoopBound(
                    try MediaPort(loop: loop, address: "127.0.0.1", port: 0, group: clock.group, place: 0), loop: loop)
            }
        }.get()
        // The third follows while the second waits. Then the next share ends with the second one.
        clock.handOver(2)
        #expect(await eventually(within: 5) { await onLoop(loop) { loop.traffic.received == 3 } })
        // The bell rings again for later ones.
        clock.handOver(1)
        #expect(await eventually(within: 5) { await onLoop(loop) { loop.traffic.received == 4 } })
        await onLoop(loop) { port.value.close() }
        loop.shutdown()
    }

    @Test func `a flood of checks leaves room for media, and what has no room is counted`() {
        let inbox = PortInbox()
        let pair = AddressPair(
            remote: TransportAddress(ipv4: 1, port: 1), local: TransportAddress(ipv4: 2, port: 2))
        func hand(_ meaning: DatagramBundle.Meaning, _ count: Int) {
            var bundle = DatagramBundle()
            for number in 0..<count {
                withUnsafeBytes(of: UInt32(number)) { bundle.append(meaning, $0, on: pair, from: 1) }
            }
            inbox.add(&bundle)
            #expect(bundle.isEmpty)
        }
        let checks = PortInbox.room(for: .check)
        #expect(checks <= PortInbox.room(for: .media) / 2)
        hand(.check, 1)
        hand(.check, checks + 5)
        #expect(inbox.dropped == 6)
        hand(.media, PortInbox.room(for: .media))
        #expect(inbox.dropped == 6 + checks)
        var taken = DatagramBundle()
        inbox.take(into: &taken)
        #expect(taken.items.count == PortInbox.room(for: .media))
        #expect(taken.bytes.count == 4 * taken.items.count)
        #expect(taken.items.prefix { $0.meaning == .check }.count == checks)
        var none = DatagramBundle()
        inbox.take(into: &none)
        #expect(none.isEmpty)
    }

    // MARK: -

    private func handedOver(_ ports: [LoopBound<MediaPort>]) async -> [Int] {
        var counts: [Int] = []
        for port in ports { counts.append(await onLoop(port.loop) { port.value.statistics.handedOver }) }
        return counts
    }

    private func withGroup(
        at address: String = "127.0.0.1", _ body: ([LoopBound<MediaPort>]) async throws -> Void
    ) async throws {
        let group = PortGroup(2)
        let loops = [EventLoop(name: "first"), EventLoop(name: "second")]
        var ports: [LoopBound<MediaPort>] = []
        for (place, loop) in loops.enumerated() {
            let number: UInt16 =
                if let first = ports.first { await onLoop(first.loop) { first.value.number } } else { 0 }
            ports.append(
                try await onLoop(loop) {
                    Result { () throws(TransportError) in
                        LoopBound(
                            try MediaPort(loop: loop, address: address, port: number, group: group, place: place),
                            loop: loop)
                    }
                }.get())
        }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(ports))
        } catch {
            result = .failure(error)
        }
        for port in ports { await onLoop(port.loop) { port.value.close() } }
        for loop in loops { loop.shutdown() }
        try result.get()
    }
}

/// A clock by which each share of a turn ends with its first piece, and another loop that hands over one more datagram
/// when the first was handled.
private final class SlowClock: @unchecked Sendable {
    // Sendable by hand: the variables are used on the loop only.

    let group = PortGroup(2)
    weak var loop: EventLoop?
    private var time = MonotonicTime.zero
    private var hasHandedOver = false

    func read() -> MonotonicTime {
        if !hasHandedOver, loop?.traffic.received == 1 {
            hasHandedOver = true
            handOver(1)
        }
        time = time + TurnShare.time
        return time
    }

    func handOver(_ count: Int) {
        let address = TransportAddress(ipv4: 0x7f00_0001, port: 9)
        var bundle = DatagramBundle()
        for _ in 0..<count {
            [UInt8](repeating: 0x80, count: 20).withUnsafeBytes {
                bundle.append(.media, $0, on: AddressPair(remote: address, local: address), from: 1)
            }
        }
        group.inboxes[0].add(&bundle)
    }
}

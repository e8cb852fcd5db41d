import PeerIO
import PeerLoop
import RTP
import RoomFixtures
import RoomProtocol
import Synchronization
import Testing
import TestSupport

@testable import RoomServer

@Suite(.serialized) struct FullRoomTests {
    /// A clock on which each reading takes 100 µs, so that a turn's share of 2 ms is 20 pieces of work.
    private final class SteppedClock: Sendable {
        static let pieces = 20
        private let readings = Atomic<UInt64>(0)

        var now: MonotonicTime {
            MonotonicTime(nanoseconds: readings.add(1, ordering: .relaxed).newValue * 100_000)
        }
    }

    @Test func `500 participants announce audio and one bursts, while each turn does its share and other media flows`()
        async throws
    {
        let clock = SteppedClock()
        try await withMedia(configured: { $0.turnClock = { clock.now } }) { server, grant, loop in
            let probe = try await Probe(server, grant, loop: loop)
            let crowd = try await Crowd(500, in: server, token: grant.accessToken, room: "full", loop: loop)
            let result = await run(crowd, probe, server)
            await crowd.leave()
            await probe.close()
            try result.get()
        }
    }

    private func run(_ crowd: Crowd, _ probe: Probe, _ server: RoomServer) async -> Result<Void, any Error> {
        let pings = probe.keepAlive()
        defer { pings.cancel() }
        do {
            crowd.join()
            try await crowd.announceAudio()
            try await probe.passes(20)
            await crowd.speak(0)
            await crowd.speak(1..<5001, as: 0)
            await crowd.speak(1)
            try await probe.passes(20)
            let most = await server.busiestTurn
            #expect(most.work == SteppedClock.pieces)
            #expect(most.datagrams == SteppedClock.pieces)
            #expect(most.timers <= SteppedClock.pieces)
            // Each entry and each stream is announced to all others, and encoded once.
            let told = (0..<500).reduce(0, +) + 500 * 499
            #expect(await eventually(within: 60) { crowd.wire.frames > told })
            #expect(crowd.wire.encodings < 500 * 20)
            return .success(())
        } catch { return .failure(error) }
    }
}

/// A publisher and a subscriber in another room, whose media must continue.
private struct Probe {
    private let publisher: MediaClient
    private let subscriber: MediaClient
    private let up: LoopBound<MediaSession>
    private let down: LoopBound<MediaSession>
    private let loop: EventLoop

    init(_ server: RoomServer, _ grant: AccessGrant, loop: EventLoop) async throws {
        self.loop = loop
        publisher = try MediaClient(server, grant, room: "probe", loop: loop)
        let (up, streams) = try await publisher.publish()
        subscriber = try MediaClient(server, grant, room: "probe", loop: loop)
        let down = try await subscriber.watch()
        try subscriber.subscribe(streams[0])
        (self.up, self.down) = (up, down)
        try #require(await packetsFlow(1, from: up, to: down, on: loop))
    }

    /// Sends pings until it is cancelled. The server drops a client whose signalling is silent for 20 s, and a busy
    /// machine may take longer to admit the crowd.
    func keepAlive() -> Task<Void, Never> {
        // Sending does not disturb another thread that reads.
        nonisolated(unsafe) let clients = [publisher.raw, subscriber.raw]
        return Task {
            while !Task.isCancelled {
                for client in clients { client.sendMessage(.ping) }
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// Sends packets one by one. Each has to arrive before the next is sent, unless the kernel dropped it: a burst of others fills the
    /// buffer of the socket that all share.
    func passes(_ count: Int) async throws {
        let (up, down) = (up, down)
        for _ in 0..<count {
            let before = await onLoop(loop) { down.value.received.count }
            var hasArrived = false
            for _ in 0..<5 where !hasArrived {
                await onLoop(loop) { up.value.send(next: 1) }
                hasArrived = await eventually(within: 2) { await onLoop(loop) { down.value.received.count > before } }
            }
            try #require(hasArrived)
        }
        for client in [publisher, subscriber] {
            client.raw.sendMessage(.ping, id: 9000)
            _ = try client.raw.message { $0.id == 9000 }
        }
    }

    func close() async {
        await publisher.close()
        await subscriber.close()
    }
}

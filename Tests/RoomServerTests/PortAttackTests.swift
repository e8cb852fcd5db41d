import Foundation
import Glibc
import PeerIO
import PeerLoop
import RoomFixtures
import RoomProtocol
import TestFixtures
import Testing
import TestSupport

@testable import RoomServer

/// Attacks on a whole server with one media port.
@Suite(.serialized) struct PortAttackTests {
    @Test("S15: a client that sends 10,000 candidates and more is disconnected, and the server sends nothing to any")
    func candidates() async throws {
        try await withServer { server, grant in
            let target = try DatagramTarget()
            let (watcher, _) = try join(server, grant.accessToken)
            let (client, joined) = try join(server, grant.accessToken)
            // The first one for up opens that session. The sockets' buffers have room for about 10,000 messages after
            // the last one that the server reads.
            let isDisconnected = (0..<100_000).contains { number in
                let text = "candidate:\(number) 1 udp \(number + 1) 127.0.0.1 \(target.port) typ host"
                let candidate = Candidate(session: number % 2 == 0 ? .down : .up, candidate: text)
                return !client.sendText(Envelope(ClientMessage.candidate(candidate)).json())
            }
            #expect(isDisconnected)
            let left = try watcher.message { if case .participantLeft = $0.message { true } else { false } }
            guard case .participantLeft(let reference) = left.message else { return }
            #expect(reference.participant == joined.participant)
            watcher.sendMessage(.ping, id: 5)
            #expect(try watcher.message { $0.id == 5 }.message == .pong)
            // The down session of the other one.
            #expect(await eventually { await server.portCounts == (1, 0) })
            #expect(!target.hasReceived)
            #expect(await server.busiestTurn.work <= EventLoop.workShare)
        }
    }

    @Test("S15: idle TCP connections cost the media threads no turn, and the media port accepts none")
    func idleTCP() async throws {
        try await withServer { server, grant in
            let (watcher, _) = try join(server, grant.accessToken)
            func turns() throws -> Int {
                // Messages that pass through the loop, so that the time between two counts is used.
                for id in 10..<60 {
                    watcher.sendMessage(.unsubscribe(StreamReference(stream: 1)), id: id)
                    _ = try watcher.message { $0.id == id }
                }
                return try readStatistics(of: server).loops.map(\.turns.count).reduce(0, +)
            }
            let (first, second) = (try turns(), try turns())
            let idle = try (0..<100).map { _ in try RawClient(port: server.port) }
            let (third, fourth) = (try turns(), try turns())
            // A loop that something keeps busy makes thousands of turns in this time.
            #expect(fourth - third <= 2 * (second - first) + 20)
            _ = idle
            let number = try #require(server.media?.ports.lowerBound)
            #expect(throws: RawClientError.self) { try RawClient(port: number) }
        }
    }

    @Test("S18: clients that connect media and vanish leave no session, pair, descriptor or thread")
    func vanishing() async throws {
        let (rounds, each) = (Soak.rounds(5, soak: 100), 8)
        try await withMedia { server, grant, loop in
            var before: (descriptors: Int, threads: Int)?
            for round in 0..<rounds {
                var sessions: [LoopBound<MediaSession>] = []
                var clients: [MediaClient] = []
                for number in 0..<each {
                    let client = try MediaClient(server, grant, room: "room-\(number % 3)", loop: loop)
                    sessions.append(try await client.publish().session)
                    clients.append(client)
                }
                let published = sessions
                #expect(await eventually { await onLoop(loop) { published.allSatisfy { $0.value.isSecured } } })
                // An up and a down session of each; only the up sessions have a path.
                #expect(await server.portCounts.sessions == 2 * each)
                #expect(await server.portCounts.pairs >= each)
                // Half of them say goodbye by DTLS, and none by signalling.
                for client in clients.prefix(each / 2) { await client.close() }
                clients = []
                #expect(await eventually { await server.portCounts == (0, 0) })
                await onLoop(loop) {}
                let now = (entries(of: "/proc/self/fd"), entries(of: "/proc/self/task"))
                // The first rounds start threads that stay.
                if round == rounds / 2 { before = now }
                guard let before, round == rounds - 1 else { continue }
                // NIO closes the sockets of signalling a moment later.
                #expect(await eventually { entries(of: "/proc/self/fd") <= before.descriptors + 4 })
                #expect(now.1 <= before.threads + 4)
            }
        }
    }
}

/// A UDP socket that somebody names as a candidate.
private final class DatagramTarget {
    private let descriptor: Int32
    let port: UInt16

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let descriptor = self.descriptor
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        try #require(isBound)
    }

    deinit { close(descriptor) }

    var hasReceived: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) >= 0
    }
}

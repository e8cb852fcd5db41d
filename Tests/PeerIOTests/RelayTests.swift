import Foundation
import Glibc
import ICELite
import RTP
import Testing
import TestSupport

@testable import PeerIO
import PeerLoop

func named(_ url: String, _ turn: TURNServer, password: String = TURNServer.password) throws -> ICEServer {
    var server = try ICEServer(url: url, username: TURNServer.user, credential: password)
    server.authorities = turn.certificate
    return server
}

/// A call whose offerer uses TURN servers alone, to the port of a lite answerer.
func relayedCall(
    _ port: LoopBound<MediaPort>, _ servers: [ICEServer], _ change: (inout Call.Options) -> Void = { _ in }
) async throws -> Call {
    var options = Call.Options(answererPort: port)
    options.offererServers = ICEServers(servers, policy: .relay)
    change(&options)
    return try await Call.begin(on: port.loop, options)
}

func routeOf(_ call: Call) async -> MediaRoute? { await onLoop(call.loop) { call.offerer.value.peer.route } }

@Suite(.serialized)
struct RelayTests {
    @Test(arguments: ICEServer.Transport.allCases)
    func `media passes through a TURN server over UDP, TCP and TLS`(transport: ICEServer.Transport) async throws {
        let turn = try TURNServer()
        let url = [ICEServer.Transport.udp: turn.udp, .tcp: turn.tcp, .tls: turn.tls][transport] ?? ""
        try await withPort { port, loop in
            let call = try await relayedCall(port, [try named(url, turn)])
            try #require(await call.isSecured(within: 30))
            let local = await onLoop(loop) { call.offerer.value.peer.local.candidates }
            #expect(!local.isEmpty && local.allSatisfy { $0.contains("typ relay") }, "\(local)")
            let route = try #require(await routeOf(call))
            #expect(route.local == .relayed)
            #expect(route.transport == transport)
            #expect(route.relay == (transport == .tls ? "localhost:\(turn.tlsPort)" : "127.0.0.1:\(turn.port)"))
            // TCP drops what its queue cannot take, so a burst need not arrive as a whole.
            await call.sendVideo(100, perTurn: 1, length: 500)
            #expect(await eventually { await call.videoReceived().count > 50 })
            await call.sendAudio(20)
            #expect(await eventually { await call.audioReceived() == 20 })
            await call.close()
        }
    }

    @Test func `the relay over UDP is used rather than those over TCP and TLS`() async throws {
        let turn = try TURNServer()
        try await withPort { port, _ in
            let call = try await relayedCall(port, [turn.tls, turn.tcp, turn.udp].map { try named($0, turn) })
            try #require(await call.isSecured(within: 30))
            #expect(await routeOf(call)?.transport == .udp)
            await call.close()
        }
    }

    @Test func `a direct way is used if there is one, and costs no allocation on a TURN server`() async throws {
        let turn = try TURNServer()
        try await withPort { port, loop in
            let call = try await relayedCall(port, [try named(turn.udp, turn)]) { $0.offererServers.policy = .all }
            try #require(await call.isSecured(within: 30))
            #expect(await eventually { await routeOf(call)?.local == .host })
            #expect(await eventually { await onLoop(loop) { call.offerer.value.peer.local.endOfCandidates } })
            await call.close()
            // Another client, whose allocation is logged after any of the first one's.
            _ = try RelayTest.run(try named(turn.udp, turn))
            #expect(turn.allocated == 1)
        }
    }

    @Test(arguments: ["udp", "tcp", "tls"])
    func `a wrong password fails at once, with the server's name and a code`(transport: String) async throws {
        let turn = try TURNServer()
        let url = ["udp": turn.udp, "tcp": turn.tcp][transport] ?? turn.tls
        try await withPort { port, loop in
            let call = try await relayedCall(port, [try named(url, turn, password: "wrong")])
            #expect(await eventually { await onLoop(loop) { call.offerer.value.failure != nil } })
            let error = await onLoop(loop) { call.offerer.value.failure }
            #expect(error?.code == "turn.unauthorized")
            #expect(error?.message.contains("rejects the user \"ada\"") == true, "\(String(describing: error))")
            await call.close()
        }
    }

    @Test func `a TURN server that does not exist, and one with a foreign certificate, are reported as such`()
        async throws
    {
        let turn = try TURNServer()
        let tls = turn.tls
        var stranger = try named(tls, turn)
        stranger.authorities = nil
        try await withPort { port, loop in
            let call = try await relayedCall(port, [stranger])
            #expect(await eventually { await onLoop(loop) { call.offerer.value.failure?.code == "turn.certificate" } })
            await call.close()
        }
        let gone = try [turn.udp, turn.tcp, tls].map { try named($0, turn) }
        turn.end()
        for server in gone {
            #expect { try RelayTest.run(server, seconds: 1) } throws: {
                ($0 as? TransportError)?.code == "turn.unreachable"
            }
        }
    }

    @Test func `a trial of a TURN server returns its relayed address, and frees the allocation`() throws {
        let turn = try TURNServer()
        for (count, url) in [turn.udp, turn.tcp, turn.tls].enumerated() {
            #expect(try RelayTest.run(try named(url, turn)).relay.host == "127.0.0.1", "\(url)")
            #expect(turn.freed == count + 1, "\(url)")
        }
    }

    @Test func `a call that ends frees its allocation, also through TLS`() async throws {
        let turn = try TURNServer()
        for (count, url) in [turn.udp, turn.tls].enumerated() {
            try await withPort { port, _ in
                let call = try await relayedCall(port, [try named(url, turn)])
                try #require(await call.isSecured(within: 30))
                await call.close()
                #expect(await eventually { turn.freed == count + 1 }, "\(url)")
            }
        }
    }

    @Test func `without UDP, the relay over TCP is used`() async throws {
        let turn = try TURNServer(["--no-udp"])
        try await withPort { port, _ in
            let call = try await relayedCall(port, [turn.tls, turn.tcp, turn.udp].map { try named($0, turn) })
            try #require(await call.isSecured(within: 30))
            #expect(await routeOf(call)?.transport == .tcp)
            await call.close()
        }
    }

    @Test func `an ICE restart uses the TURN servers that were set last`() async throws {
        let (turn, next) = (try TURNServer(), try TURNServer())
        try await withPort { port, loop in
            let call = try await relayedCall(port, [try named(turn.udp, turn)])
            try #require(await call.isSecured(within: 30))
            let servers = ICEServers([try named(next.udp, next)], policy: .relay)
            try await onLoop(loop) {
                Result {
                    let (client, server) = (call.offerer.value.peer, call.answerer.value.peer)
                    client.servers = servers
                    try client.restart()
                    try server.restart()
                    try server.restart(with: client.local)
                    try client.restart(with: server.local)
                }
            }.get()
            #expect(await eventually { await routeOf(call)?.relay == "127.0.0.1:\(next.port)" })
            await call.close()
        }
    }

    @Test func `a call whose TURN server dies is lost within its limit`() async throws {
        let turn = try TURNServer()
        try await withPort { port, loop in
            let call = try await relayedCall(port, [try named(turn.tcp, turn)]) { $0.consent = .seconds(2) }
            try #require(await call.isSecured(within: 30))
            turn.end()
            await call.sendVideo(10, perTurn: 1)
            #expect(
                await eventually {
                    await call.sendVideo(1, perTurn: 1)
                    return await onLoop(loop) { call.offerer.value.failure?.code == "transport.connection-lost" }
                })
            // For messages, although libnice has no pair any longer.
            #expect(await routeOf(call)?.relay == "127.0.0.1:\(turn.port)")
            #expect(await routeOf(call)?.transport == .tcp)
            await call.close()
        }
    }

    @Test func `only relays without a TURN server is refused`() async throws {
        let loop = EventLoop(name: "test")
        let code = try await onLoop(loop) {
            Result {
                var configuration = PeerConfiguration(
                    iceRole: .controlling, certificate: try Certificate(), cname: "test")
                configuration.servers = ICEServers([], policy: .relay)
                let peer = try Peer(loop: loop, configuration: configuration)
                defer { peer.close() }
                do throws(TransportError) { try peer.start() } catch { return error.code }
                return ""
            }
        }.get()
        #expect(code == "turn.missing")
        await onLoop(loop) {}
        loop.shutdown()
    }

    @Test func `a TURN server that the other end names leads to no address beyond that end's reach`() throws {
        func code(_ url: String, by end: String?) -> String? {
            do throws(TransportError) {
                var server = try ICEServer(url: url, username: "u", credential: "p")
                server.origin = .named(byEndAt: end)
                _ = try RelayAccess.addresses(of: server)
                return nil
            } catch {
                return error.code
            }
        }
        let refused = "turn.unreachable"
        // A server on the Internet sends nobody into a private network, or to this machine.
        for host in ["127.0.0.1", "[::1]", "192.168.1.1", "10.0.0.1", "[fd00::1]", "169.254.169.254", "[fe80::1]"] {
            #expect(code("turn:\(host):3478", by: "203.0.113.7") == refused, "\(host)")
            #expect(code("turn:\(host):3478", by: nil) == refused, "\(host)")
        }
        // A name counts by its addresses.
        #expect(code("turn:localhost:3478", by: "203.0.113.7") == refused)
        for host in ["224.0.0.1", "255.255.255.255", "0.0.0.0", "[::]", "[ff02::1]", "[::ffff:127.0.0.1]"] {
            #expect(code("turn:\(host):3478", by: "127.0.0.1") == refused, "\(host)")
        }
        #expect(code("turn:198.51.100.2:3478", by: "203.0.113.7") == nil)
        #expect(code("turn:10.0.0.1:3478", by: "192.168.1.5") == nil)
        #expect(code("turn:127.0.0.1:3478", by: "192.168.1.5") == refused)
        #expect(code("turn:127.0.0.1:3478", by: "127.0.0.1") == nil)
        #expect(code("turn:169.254.169.254:3478", by: "127.0.0.1") == refused)
        // Ports of other services.
        for port in [22, 25, 53] { #expect(code("turn:198.51.100.2:\(port)", by: "203.0.113.7") == refused) }
        for port in [80, 443, 1024] { #expect(code("turn:198.51.100.2:\(port)", by: "203.0.113.7") == nil) }
    }
}

import Foundation
import Glibc
import ICELite
import RTP
import Synchronization
import Testing
import TestSupport

@testable import PeerIO
import PeerLoop

/// TURN servers and networks that behave badly.
@Suite(.serialized)
struct RelayFaultTests {
    /// A tunnel to a server, with a connection as libnice makes it.
    private func withTunnel(
        to server: ICEServer, seconds: UInt32 = 3, _ body: (_ client: Int32) throws -> Void
    ) async throws {
        let stream = try RelayAccess.connect(to: server, seconds: seconds, during: RelayWork())
        let loop = EventLoop(name: "tunnel")
        let tunnel = try #require(
            await onLoop(loop) {
                RelayTunnel(to: stream, from: "127.0.0.1", on: loop).map { LoopBound($0, loop: loop) }
            })
        let port = await onLoop(loop) { tunnel.value.port }
        let client = try Stream.connect(to: port)
        let result = Result { try body(client) }
        close(client)
        await onLoop(loop) { tunnel.value.close() }
        loop.shutdown()
        try result.get()
    }

    @Test func `a tunnel stays while the server is silent for longer than the limit of a connection`() async throws {
        let turn = try TURNServer()
        try await withTunnel(to: try named(turn.tls, turn), seconds: 1) { client in
            // The end of the connection would be readable.
            var entry = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
            #expect(poll(&entry, 1, 1500) == 0)
        }
    }

    @Test func `a tunnel ends at a redirection to another server, and passes on other responses`() async throws {
        for (code, isPassed) in [(UInt8(0), false), (1, true)] {
            let listener = try Listener()
            try await withTunnel(to: try listener.server("turn", "?transport=tcp")) { client in
                let server = accept(listener.descriptor, nil, nil)
                defer { close(server) }
                // 300 (Try Alternate) or 401 (Unauthenticated), in two parts.
                let response: [UInt8] =
                    [0x01, 0x13, 0, 8, 0x21, 0x12, 0xa4, 0x42] + Array(repeating: 7, count: 12)
                    + [0, 9, 0, 4, 0, 0, 3 + code, code]
                _ = write(server, Array(response[..<11]), 11)
                _ = write(server, Array(response[11...]), response.count - 11)
                #expect(Stream.read(response.count, from: client) == (isPassed ? response : []))
            }
        }
    }

    @Test func `a TLS server that sends a byte now and then is given up at the limit of the work`() throws {
        let endless = try EndlessServer()
        #expect {
            try RelayAccess.connect(to: try endless.listener.server("turns"), seconds: 3, during: RelayWork(seconds: 1))
        } throws: {
            let error = $0 as? TransportError
            return error?.code == "turn.unreachable" && error?.message.contains("within 1 s") == true
        }
    }

    @Test func `the end of a call ends its unfinished connections to TURN servers`() async throws {
        let endless = try EndlessServer()
        try await withPort { port, _ in
            let call = try await relayedCall(port, [try endless.listener.server("turns")])
            #expect(await eventually { endless.accepted == 1 })
            await call.close()
            #expect(await eventually { endless.ended == 1 })
        }
    }

    @Test func `an unfinished connection to a TURN server ends when another one gives a relay`() async throws {
        let (turn, endless) = (try TURNServer(), try EndlessServer())
        try await withPort { port, _ in
            let servers = [try endless.listener.server("turns"), try named(turn.tls, turn)]
            let call = try await relayedCall(port, servers)
            try #require(await call.isSecured(within: 30))
            #expect(await eventually { endless.ended == endless.accepted })
            await call.close()
        }
    }

    @Test func `a server that rejects the user ends nothing while another one is not ready yet`() async throws {
        let turn = try TURNServer()
        // Longer than the timeout of the call.
        let late = try LateServer(to: turn.tlsPort, after: 0.8)
        try await withPort { port, _ in
            let servers = [
                try named(turn.udp, turn, password: "wrong"), try named("turns:localhost:\(late.listener.port)", turn),
            ]
            let call = try await relayedCall(port, servers) { $0.relayTimeout = .milliseconds(200) }
            try #require(await call.isSecured(within: 30))
            #expect(await routeOf(call)?.transport == .tls)
            await call.close()
        }
    }

    @Test func `a server that works hides the problems of others, and the most telling problem comes first`() throws {
        let servers = try ["turn:a", "turn:b", "turn:c"].map { try ICEServer(url: $0, username: "u", credential: "p") }
        func problem(_ code: String) -> TransportError { TransportError(code: "turn.\(code)", message: "") }
        var problems = RelayProblems(servers)
        #expect(problems.first == nil && problems.untested == servers)
        problems.note(problem("unreachable"), of: servers[0])
        #expect(problems.first?.code == "turn.unreachable")
        problems.note(problem("unauthorized"), of: servers[1])
        #expect(problems.first?.code == "turn.unauthorized")
        #expect(problems.untested == [servers[2]])
        problems.note(nil, of: servers[2])
        #expect(problems.first == nil)
    }

    @Test func `an outage of a second delays an allocation, and does not prevent it`() async throws {
        let turn = try TURNServer()
        let proxy = try DatagramProxy(to: turn.port, dropping: 4)
        try await withPort { port, _ in
            let call = try await relayedCall(port, [try named("turn:127.0.0.1:\(proxy.port)", turn)])
            #expect(await call.isSecured(within: 10))
            await call.close()
        }
    }

    @Test func `a trial over UDP asks an address of each family, until one answers`() throws {
        let turn = try TURNServer()
        // GLib resolves it to ::1 too, where nothing listens. Nothing does at 127.0.0.2 either.
        #expect(try RelayTest.run(try named("turn:localhost:\(turn.port)", turn)).relay.host == "127.0.0.1")
        let server = try named(turn.udp, turn)
        func relay(_ addresses: [String]) throws -> String {
            try RelayTest.allocate(at: server, byDatagramsTo: addresses, seconds: 1, during: RelayWork()).host
        }
        #expect(try relay(["127.0.0.2", "127.0.0.1"]) == "127.0.0.1")
        #expect { try relay(["127.0.0.2"]) } throws: {
            ($0 as? TransportError)?.message.contains("refuses UDP") == true
        }
        let all = ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2"]
        #expect(RelayAccess.firstOfEachFamily(all) == ["192.0.2.1", "2001:db8::1"])
        #expect(RelayAccess.firstOfEachFamily(["::1"]) == ["::1"])
    }

    @Test func `a name that is unknown, and a place that is forbidden, are the causes of the error`() throws {
        func cause(_ host: String, _ origin: ICEServer.Origin = .configured) throws -> RelayPlaceProblem? {
            var server = try ICEServer(url: "turn:\(host)", username: "u", credential: "p")
            server.origin = origin
            do throws(TransportError) {
                _ = try RelayAccess.addresses(of: server)
                return nil
            } catch {
                return error.cause as? RelayPlaceProblem
            }
        }
        // No name server is asked for a label of more than 63 bytes.
        #expect(try cause(String(repeating: "a", count: 64) + ".invalid") == .unknownName)
        #expect(try cause("10.0.0.1", .named(byEndAt: "203.0.113.7")) == .forbidden)
        #expect(try cause("198.51.100.2:53", .named(byEndAt: "203.0.113.7")) == .forbidden)
    }

    @Test func `a client without an IPv4 address gets a relay over TLS`() async throws {
        let turn = try TURNServer()
        try await withPort { port, loop in
            let call = try await relayedCall(port, [try named(turn.tls, turn)]) { $0.scope = .addresses(["::1"]) }
            // It could not use the other end's candidate, which is of IPv4 on loopback.
            #expect(
                await eventually {
                    await onLoop(loop) {
                        call.offerer.value.peer.local.candidates.contains { $0.contains("typ relay") }
                    }
                })
            await call.close()
        }
    }

    @Test func `a client of a server on its own machine also uses other addresses if a TURN server may be elsewhere`()
        throws
    {
        func servers(_ url: String) throws -> ICEServers {
            ICEServers([try ICEServer(url: url, username: "u", credential: "p")])
        }
        #expect(ListeningScope.reaching("127.0.0.1", and: try servers("turn:127.0.0.1")) == .loopback)
        #expect(ListeningScope.reaching("127.0.0.1", and: try servers("turn:turn.example.org")) == .any)
        #expect(ListeningScope.reaching("203.0.113.7", and: try servers("turn:a")) == .anyButLoopback)
        let both = ["127.0.0.1", "::1"]
        #expect(ListeningScope.reaching("::1", and: ICEServers()).addresses == both)
        #expect(ListeningScope.reaching("::1", and: try servers("turn:[::1]")).addresses == both)
        let all = ListeningScope.reaching("::1", and: try servers("turn:turn.example.org")).addresses
        #expect(all == both + ListeningScope.anyButLoopback.addresses)
    }

    @Test func `a STUN server that the other end names may have no port of other services`() throws {
        func uses(_ url: String) throws -> Bool {
            var server = try ICEServer(url: url)
            server.origin = .named(byEndAt: "203.0.113.7")
            return ICEAgent.reflector(among: [server]) != nil
        }
        #expect(try uses("stun:198.51.100.2:3478") && uses("stun:198.51.100.2:443"))
        #expect(try !uses("stun:198.51.100.2:53") && !uses("stun:10.0.0.1:3478") && !uses("stun:name.example.org"))
    }
}

// MARK: - Servers

private enum Stream {
    static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }

    /// Binds or connects a socket.
    static func apply(
        _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, to descriptor: Int32, port: UInt16
    ) throws {
        var address = address(port)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                function(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw TransportError(code: "test.socket", message: "errno \(errno)") }
    }

    static func port(of descriptor: Int32) -> UInt16 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    static func connect(to port: UInt16, _ type: __socket_type = SOCK_STREAM) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(type.rawValue), 0)
        try apply(Glibc.connect, to: descriptor, port: port)
        return descriptor
    }

    /// Up to so many bytes: fewer if the connection ends.
    static func read(_ count: Int, from descriptor: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: count)
        while bytes.count < count {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, 5000) > 0 else { return bytes }
            let more = Glibc.read(descriptor, &part, count - bytes.count)
            guard more > 0 else { return bytes }
            bytes += part[..<more]
        }
        return bytes
    }

    /// Whether the other end has closed.
    static func hasEnded(_ descriptor: Int32) -> Bool {
        var part = [UInt8](repeating: 0, count: 4096)
        return recv(descriptor, &part, part.count, Int32(MSG_DONTWAIT)) == 0
    }
}

/// A TCP port of loopback.
private final class Listener: Sendable {
    let descriptor: Int32
    let port: UInt16

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try Stream.apply(bind, to: descriptor, port: 0)
        try #require(listen(descriptor, 8) == 0)
        port = Stream.port(of: descriptor)
    }

    deinit { close(descriptor) }

    func server(_ scheme: String, _ rest: String = "") throws -> ICEServer {
        try ICEServer(url: "\(scheme):127.0.0.1:\(port)\(rest)", username: "u", credential: "p")
    }

    /// Serves each connection on a thread of its own, until `end`.
    func serve(_ body: @escaping @Sendable (Int32) -> Void) {
        let descriptor = descriptor
        Thread.detachNewThread {
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { return }
                Thread.detachNewThread {
                    body(connection)
                    close(connection)
                }
            }
        }
    }

    /// No connection follows.
    func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}

/// A server that sends one long TLS record, a byte every 50 ms, for 10 s at most.
private final class EndlessServer: Sendable {
    let listener: Listener
    private let counts: Counts

    private final class Counts: Sendable {
        let accepted = Atomic(0)
        let ended = Atomic(0)
    }

    /// How many clients connected, and how many of them closed.
    var accepted: Int { counts.accepted.load(ordering: .sequentiallyConsistent) }
    var ended: Int { counts.ended.load(ordering: .sequentiallyConsistent) }

    init() throws {
        listener = try Listener()
        let counts = Counts()
        self.counts = counts
        listener.serve { connection in
            counts.accepted.add(1, ordering: .sequentiallyConsistent)
            let record: [UInt8] = [0x16, 3, 3, 0x40, 0] + Array(repeating: 2, count: 195)
            for byte in record {
                guard send(connection, [byte], 1, Int32(MSG_NOSIGNAL)) == 1, !Stream.hasEnded(connection)
                else {
                    counts.ended.add(1, ordering: .sequentiallyConsistent)
                    return
                }
                usleep(50_000)
            }
        }
    }

    deinit { listener.end() }
}

/// A way to a server that passes nothing on for a while.
private final class LateServer: Sendable {
    let listener: Listener

    init(to port: Int, after seconds: Double) throws {
        listener = try Listener()
        listener.serve { client in
            usleep(UInt32(seconds * 1_000_000))
            guard let server = try? Stream.connect(to: UInt16(port)) else { return }
            defer { close(server) }
            var bytes = [UInt8](repeating: 0, count: 65536)
            while true {
                var entries = [client, server].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
                guard poll(&entries, 2, -1) > 0 else { return }
                for (entry, to) in zip(entries, [server, client]) where entry.revents != 0 {
                    let count = read(entry.fd, &bytes, bytes.count)
                    guard count > 0, send(to, bytes, count, Int32(MSG_NOSIGNAL)) == count else { return }
                }
            }
        }
    }

    deinit { listener.end() }
}

/// A way to a server over UDP, for one client, that loses the client's first datagrams.
private final class DatagramProxy: Sendable {
    let port: UInt16
    private let client: Int32

    init(to server: Int, dropping count: Int) throws {
        let client = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        try Stream.apply(bind, to: client, port: 0)
        self.client = client
        port = Stream.port(of: client)
        let upstream = try Stream.connect(to: UInt16(server), SOCK_DGRAM)
        Thread.detachNewThread {
            var (dropped, bytes) = (0, [UInt8](repeating: 0, count: 65536))
            var from = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            while true {
                var entries = [client, upstream].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
                guard poll(&entries, 2, -1) > 0 else { break }
                if entries[0].revents != 0 {
                    let size = withUnsafeMutablePointer(to: &from) {
                        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            recvfrom(client, &bytes, bytes.count, 0, $0, &length)
                        }
                    }
                    // `shutdown` in deinit.
                    guard size > 0 else { break }
                    dropped += 1
                    if dropped > count { send(upstream, bytes, size, 0) }
                }
                if entries[1].revents != 0 {
                    let size = recv(upstream, &bytes, bytes.count, 0)
                    _ = withUnsafePointer(to: &from) {
                        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            sendto(client, bytes, max(0, size), 0, $0, length)
                        }
                    }
                }
            }
            close(client)
            close(upstream)
        }
    }

    deinit { shutdown(client, Int32(SHUT_RDWR)) }
}

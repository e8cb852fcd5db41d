import Glibc
import PeerSession
import RTP
import Testing
import TestSupport

@testable import PeerIO
import PeerLoop

@Suite(.serialized)
struct MediaPortTests {
    @Test func `a peer on a port and a peer with an ICE agent connect, and packets flow both ways`() async throws {
        try await withPort { port, loop in
            let call = try await begin(on: port)
            try #require(await call.isSecured())
            await call.sendVideo(300)
            await call.sendAudio(20)
            #expect(await eventually { await call.videoReceived() == Array(0..<300) })
            #expect(await eventually { await call.audioReceived() == 20 })
            let payload = await onLoop(loop) { call.answerer.value.packets[7].payload }
            #expect(payload == Array(rtp(7, type: 96, ssrc: 0, length: 1000).dropFirst(12)))
            await call.close()
        }
    }

    @Test(arguments: [true, false])
    func `a peer whose candidates are names of multicast DNS is found by its checks`(isLite: Bool) async throws {
        try await withPort { port, loop in
            var options = Call.Options(answererPort: isLite ? port : nil)
            // As a browser without permission for camera or microphone hides its addresses.
            options.route = { text, isOfferer in
                isOfferer ? text.replacing("127.0.0.1", with: "1f4712db-ea17-4bcf-a596-105139dfd8bf.local") : text
            }
            let call = try await Call.begin(on: loop, options)
            try #require(await call.isSecured(within: 30))
            await call.sendVideo(20)
            #expect(await eventually { await call.videoReceived() == Array(0..<20) })
            await call.close()
        }
    }

    @Test func `all peers of a port share its socket, and each receives its own packets`() async throws {
        try await withPort { port, loop in
            let first = try await begin(on: port)
            try #require(await first.isSecured())
            let descriptors = descriptorCount()
            var calls: [Call] = []
            for _ in 0..<10 { calls.append(try await begin(on: port)) }
            // An agent has a socket; the port's end of each call has none.
            for call in calls { try #require(await call.isSecured()) }
            let opened = descriptorCount() - descriptors
            let agents = try await descriptorsOfAgent(loop) * calls.count
            #expect(opened <= agents)
            let others = calls
            let numbers = await onLoop(loop) { others.map { $0.answerer.value.peer.selectedPair?.local } }
            let number = await onLoop(loop) { port.value.number }
            #expect(Set(numbers) == ["127.0.0.1:\(number)"])
            for (index, call) in calls.enumerated() { await call.sendVideo(3, from: 10 * index) }
            for (index, call) in calls.enumerated() {
                #expect(await eventually { await call.videoReceived() == (0..<3).map { 10 * index + $0 } })
            }
            for call in calls + [first] { await call.close() }
        }
    }

    @Test func `the description of a peer on a port says that it is lite, and has the port's candidate`() async throws {
        try await withPort { port, loop in
            let call = try await begin(on: port)
            try #require(await call.isSecured())
            let local = await onLoop(loop) { call.answerer.value.peer.local }
            #expect(local.isLite)
            #expect(local.endOfCandidates)
            #expect(local.candidates.count == 1)
            let parts = local.candidates.first.map { $0.split(separator: " ").map(String.init) } ?? []
            let number = await onLoop(loop) { port.value.number }
            #expect(parts[4...] == ["127.0.0.1", "\(number)", "typ", "host"])
            await call.close()
        }
    }

    @Test func `a peer whose other end sends no more checks fails when its path expires`() async throws {
        let consent = TimeInterval.milliseconds(300)
        try await withPort(consent: consent) { port, loop in
            let call = try await begin(on: port)
            try #require(await call.isSecured())
            // libnice checks a pair in use every 5 s, so this path expires before.
            #expect(await eventually { await onLoop(loop) { call.answerer.value.failure != nil } })
            #expect(await onLoop(loop) { call.answerer.value.failure?.code } == "transport.connection-lost")
            await call.close()
        }
    }

    @Test func `a closed peer's session ends, and its descriptor stays with the port`() async throws {
        try await withPort { port, loop in
            let before = descriptorCount()
            for _ in 0..<5 {
                let call = try await begin(on: port)
                try #require(await call.isSecured())
                await call.close()
            }
            #expect(await onLoop(loop) { port.value.sessionCount } == 0)
            #expect(descriptorCount() <= before)
        }
    }

    @Test func `strangers get no answer, and do not disturb a call`() async throws {
        try await withPort { port, loop in
            let call = try await begin(on: port)
            try #require(await call.isSecured())
            let number = await onLoop(loop) { port.value.number }
            let ufrag = await onLoop(loop) { call.answerer.value.peer.local.iceUfrag }
            let before = await onLoop(loop) { port.value.statistics.ignored }
            let stranger = try Stranger(port: number)
            // Noise, a ClientHello, media, and a check of the session without its password.
            var datagrams: [[UInt8]] = [[0xff, 0xff], [22, 254, 253] + Array(repeating: 0, count: 60)]
            datagrams.append(rtp(1, type: 96, ssrc: Call.video.rawValue, length: 900))
            let username = Array("\(ufrag):abcd".utf8)
            let padded = username + Array(repeating: 0, count: (4 - username.count % 4) % 4)
            let length = UInt8(4 + padded.count)
            datagrams.append(
                [0, 1, 0, length, 0x21, 0x12, 0xa4, 0x42] + Array(repeating: 9, count: 12)
                    + [0, 6, 0, UInt8(username.count)] + padded)
            for datagram in datagrams { stranger.send(datagram) }
            #expect(
                await eventually { await onLoop(loop) { port.value.statistics.ignored } >= before + datagrams.count })
            #expect(!stranger.hasAnswer)
            await call.sendVideo(5)
            #expect(await eventually { await call.videoReceived() == Array(0..<5) })
            await call.close()
        }
    }

    @Test func `a port in use is refused with its number`() async throws {
        try await withPort { port, loop in
            let error = await onLoop(loop) {
                Result { () throws(TransportError) in
                    try MediaPort(loop: loop, address: "127.0.0.1", port: port.value.number).close()
                }
            }
            guard case .failure(let error) = error else {
                Issue.record("the port was opened twice")
                return
            }
            #expect(error.code == "transport.port-busy")
            let number = await onLoop(loop) { port.value.number }
            #expect(error.message.contains("\(number)"))
        }
    }

    @Test(arguments: ["0.0.0.0", "::"])
    func `a port at all addresses answers from the address that was asked`(address: String) async throws {
        try await withPort(at: address) { port, loop in
            let call = try await begin(on: port) { $0.scope = .any }
            try #require(await call.isSecured())
            await call.sendVideo(5)
            #expect(await eventually { await call.videoReceived() == Array(0..<5) })
            await call.close()
        }
    }

    @Test func `a handshake that begins before the answer arrives is kept until then`() async throws {
        try await withPort { port, loop in
            let ends = try await onLoop(loop) {
                Result {
                    let ends = try self.ends(of: port, loop)
                    try ends.client.value.peer.setRemote(ends.server.value.peer.local, dtlsRole: .client)
                    return ends
                }
            }.get()
            // The ClientHello.
            #expect(await eventually { await onLoop(loop) { ends.server.value.peer.statistics.datagramsReceived > 0 } })
            await onLoop(loop) {
                var answer = ends.client.value.peer.local
                answer.setup = .active
                #expect(throws: Never.self) { try ends.server.value.peer.setRemote(answer, dtlsRole: .server) }
            }
            #expect(await eventually { await onLoop(loop) { ends.client.value.securedAt != nil } })
            let dropped = await onLoop(loop) { ends.server.value.peer.statistics.session.dropped }
            #expect(dropped.beforeConnected == 0)
            await close(ends, loop)
        }
    }

    /// libnice checks a pair once it is due, whether or not it knows the credentials.
    @Test func `candidates that arrive before the description are tried after it`() async throws {
        try await withPort { port, loop in
            let (ends, timer) = try await onLoop(loop) {
                Result {
                    let ends = try self.ends(of: port, loop)
                    let (server, client) = (ends.server.value.peer, ends.client.value.peer)
                    for candidate in server.local.candidates { client.addRemoteCandidate(candidate) }
                    client.remoteCandidatesEnded()
                    try server.setRemote(client.local, dtlsRole: .server)
                    let timer = loop.makeTimer {
                        var description = server.local
                        description.candidates = []
                        description.endOfCandidates = false
                        #expect(throws: Never.self) { try client.setRemote(description, dtlsRole: .client) }
                    }
                    timer.arm(at: loop.now + .milliseconds(50))
                    return (ends, LoopBound(timer, loop: loop))
                }
            }.get()
            #expect(await eventually { await onLoop(loop) { ends.client.value.securedAt != nil } })
            await close(ends, loop)
            await onLoop(loop) { timer.value.disarm() }
        }
    }

    // MARK: -

    private typealias Ends = (server: LoopBound<End>, client: LoopBound<End>)

    /// A peer on the port and a peer with an ICE agent, both started.
    private func ends(of port: LoopBound<MediaPort>, _ loop: EventLoop) throws -> Ends {
        var configuration = PeerConfiguration(
            iceRole: .controlled, certificate: try Certificate(), cname: "test", scope: .loopback)
        configuration.port = port
        let server = try End(loop: loop, configuration: configuration)
        try server.peer.start()
        configuration.iceRole = .controlling
        configuration.port = nil
        let client = try End(loop: loop, configuration: configuration)
        try client.peer.start()
        return (LoopBound(server, loop: loop), LoopBound(client, loop: loop))
    }

    private func close(_ ends: Ends, _ loop: EventLoop) async {
        await onLoop(loop) {
            ends.client.value.peer.close()
            ends.server.value.peer.close()
        }
        await onLoop(loop) {}
    }

    private func descriptorsOfAgent(_ loop: EventLoop) async throws -> Int {
        let before = descriptorCount()
        let peer = try await onLoop(loop) {
            Result {
                let peer = try Peer(
                    loop: loop,
                    configuration: PeerConfiguration(
                        iceRole: .controlling, certificate: try Certificate(), cname: "agent"))
                try peer.start()
                return LoopBound(peer, loop: loop)
            }
        }.get()
        let opened = descriptorCount() - before
        await onLoop(loop) { peer.value.close() }
        await onLoop(loop) {}
        return opened
    }
}

/// A UDP socket of somebody else.
final class Stranger {
    private let descriptor: Int32

    init(port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(result == 0)
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) { _ = Glibc.send(descriptor, bytes, bytes.count, 0) }

    var hasAnswer: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) >= 0
    }
}

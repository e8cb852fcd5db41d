import Foundation
import NIOCore
import NIOEmbedded
import NIOSSL
import NIOTLS
import RTP
import RoomProtocol
import RoomTLS
import Synchronization
import TestSupport
import Testing

@testable import RoomServer

/// The certificate of a server, and its files.
@Suite struct TLSIdentityTests {
    private let folder = TemporaryFolder()
    private let lines = LogLines()

    private func copy(_ made: MadeCertificate, to files: TLSFiles) throws {
        for (from, to) in [(made.certificate, files.certificate), (made.key, files.key)] {
            try Data(contentsOf: URL(fileURLWithPath: from)).write(to: URL(fileURLWithPath: to))
        }
    }

    private func identity(
        of made: MadeCertificate, now: Double = Date().timeIntervalSince1970, log: LogQueue,
        replaced: @escaping @Sendable (ServerCertificate) -> Void = { _ in }
    ) throws -> (TLSIdentity, TLSFiles) {
        let files = TLSFiles(certificate: folder.file("used.pem"), key: folder.file("used.key"))
        try copy(made, to: files)
        return (try TLSIdentity(files, log: log, now: { now }, replaced: replaced), files)
    }

    @Test func `other files are read when two checks in a row find them alike, and a half-written one never`() throws {
        let first = try MadeCertificate.chain(in: folder.path, name: "first", names: "DNS:first")
        let second = try MadeCertificate.chain(in: folder.path, name: "second", names: "DNS:second")
        let log = LogQueue(lines.logger)
        let told = Mutex<[String]>([])
        let (identity, files) = try identity(of: first, log: log) { new in told.withLock { $0 += new.names } }
        identity.check()
        #expect(identity.certificate.names == ["first"])
        // A part of the certificate, as if its writer were interrupted for long.
        let whole = try Data(contentsOf: URL(fileURLWithPath: second.certificate))
        try whole.prefix(whole.count - 40).write(to: URL(fileURLWithPath: files.certificate))
        for _ in 0..<4 { identity.check() }
        #expect(identity.certificate.names == ["first"])
        // Its key is that of the former one.
        try whole.write(to: URL(fileURLWithPath: files.certificate))
        for _ in 0..<4 { identity.check() }
        #expect(identity.certificate.names == ["first"])
        try copy(second, to: files)
        identity.check()
        #expect(identity.certificate.names == ["first"])
        identity.check()
        #expect(identity.certificate.names == ["second"])
        #expect(told.withLock { $0 } == ["second"])
        // Files that disappear change nothing.
        try FileManager.default.removeItem(atPath: files.key)
        for _ in 0..<3 { identity.check() }
        #expect(identity.certificate.names == ["second"])
        log.drain()
        let all = lines.all
        #expect(
            all.count == 4 && all.count { $0.hasPrefix("warning TLS certificate not") } == 3
                && all.contains("notice TLS certificate replaced"), "\(all)")
        #expect(all[0].contains("ends in the middle of a block"), "\(all)")
        #expect(all[1].contains("does not belong to the first certificate"), "\(all)")
    }

    @Test func `a server without usable files does not start, and names the file and the reason`() async throws {
        let made = try MadeCertificate.chain(in: folder.path)
        let other = try MadeCertificate.chain(in: folder.path, name: "other")
        for (files, reason) in [
            (TLSFiles(certificate: folder.file("none"), key: made.key), "none does not exist"),
            (TLSFiles(certificate: made.key, key: made.key), "has no certificate in PEM form"),
            (TLSFiles(certificate: made.certificate, key: made.certificate), "has no private key in PEM form"),
            (TLSFiles(certificate: made.certificate, key: other.key), "does not belong to"),
        ] {
            do {
                let server = try await startServer { $0.tls = files }
                await server.stop()
                Issue.record("The server started.")
            } catch let error as RoomError {
                #expect(error.code == .certificateUnreadable && error.message.contains(reason), "\(error)")
            }
        }
    }

    @Test func `files that were refused are read again when their mode has changed`() async throws {
        let made = try MadeCertificate.chain(in: folder.path, name: "made")
        let other = try MadeCertificate.chain(in: folder.path, name: "other")
        let log = LogQueue(lines.logger)
        let (identity, files) = try identity(of: made, log: log)
        // An unreadable file is as good as a wrong one, which the superuser cannot read either.
        try Data(contentsOf: URL(fileURLWithPath: other.key)).write(to: URL(fileURLWithPath: files.key))
        for _ in 0..<4 { identity.check() }
        log.drain()
        #expect(lines.all.count == 1, "\(lines.all)")
        let refused = TLSFiles.Stamp(of: files)
        var mode = 0o600
        // Times of files may be as coarse as a tick of the kernel.
        try await requireEventually("a time of the change") {
            mode ^= 0o040
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: files.key)
            return TLSFiles.Stamp(of: files) != refused
        }
        for _ in 0..<4 { identity.check() }
        log.drain()
        #expect(lines.all.count == 2, "\(lines.all)")
        #expect(lines.all.allSatisfy { $0.hasPrefix("warning TLS certificate not replaced") }, "\(lines.all)")
    }

    @Test func `a server that warned of the end of its certificate reports the end too`() throws {
        let made = try MadeCertificate.chain(
            in: folder.path, days: (from: "20200101000000Z", to: "20300101000000Z"))
        let end = 1_893_456_000.0
        let time = Mutex(end - 86400)
        let files = TLSFiles(certificate: made.certificate, key: made.key)
        let log = LogQueue(lines.logger)
        let identity = try TLSIdentity(files, log: log, now: { time.withLock { $0 } })
        identity.check()
        time.withLock { $0 = end + 1 }
        for _ in 0..<3 { identity.check() }
        log.drain()
        #expect(lines.all == ["warning TLS certificate expires soon", "warning TLS certificate has expired"])
    }

    @Test func `a certificate that ends within a week is reported once`() throws {
        let made = try MadeCertificate.chain(
            in: folder.path, days: (from: "20200101000000Z", to: "20300101000000Z"))
        let end = 1_893_456_000.0
        for (now, line) in [
            (end - 8 * 86400, nil), (end - 6 * 86400, "warning TLS certificate expires soon"),
            (end + 1, "warning TLS certificate has expired"),
        ] {
            let lines = LogLines()
            let log = LogQueue(lines.logger)
            let (identity, _) = try identity(of: made, now: now, log: log)
            for _ in 0..<3 { identity.check() }
            log.drain()
            #expect(lines.all == [line].compactMap(\.self))
        }
    }
}

/// The doors that strangers try at a port with TLS.
@Suite struct PlainRequestTests {
    private static let start = MonotonicTime(nanoseconds: 0)

    @Test func `a browser that opens the page without TLS goes on to the page with it`() {
        let answer = PlainRequestHandler.response(
            to: "GET /?room=kitchen HTTP/1.1\r\nhost: rooms.example:7880\r\naccept: text/html,*/*\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 307 Temporary Redirect\r\n"))
        #expect(answer.contains("\r\nlocation: https://rooms.example:7880/?room=kitchen\r\n"))
    }

    @Test(arguments: [
        "POST /v1/sign-in HTTP/1.1\r\nhost: a\r\naccept: text/html\r\n\r\n", "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\naccept: text/html\r\n\r\n", "GET / HTTP/1.1\r\nhost: a/b\r\naccept: text/html\r\n\r\n",
        "GET //b\n HTTP/1.1\r\nhost: a\r\naccept: text/html\r\n\r\n", "GET", "", "\r\n\r\n", "SSH-2.0-x\r\n",
        "GET x HTTP/1.1\r\nhost: a\r\naccept: text/html\r\n\r\n",
    ])
    func `others get the reason, and no header of their making`(request: String) throws {
        let answer = PlainRequestHandler.response(to: request)
        let parts = answer.split(separator: "\r\n\r\n", maxSplits: 1)
        #expect(parts[0].hasPrefix("HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"))
        #expect(!parts[0].contains("location"))
        let problem = try JSONDecoder().decode(Problem.self, from: Data(parts[1].utf8))
        #expect(problem.error.message.contains("https://"))
    }

    @Test(arguments: [
        ("/v1/sign-in", "/v1/sign-in"), ("/api/v1/rpc/v1/sign-in", "/v1/sign-in"),
        ("/p/v1/room?x=/v1/rooms", "/v1/room"),
        ("/v1/rooms/v1/participants/p-1", "/v1/rooms/v1/participants/p-1"),
        ("/a/v1/rooms/kitchen", "/v1/rooms/kitchen"),
        ("/", "/"), ("/p/", "/"), ("/p/main.js?1", "/main.js"), ("/p/v1/unknown", "/unknown"), ("", ""), ("*", "*"),
        ("/v1/sign-in/x", "/x"), ("/v1/roomsx", "/roomsx"),
        (String(repeating: "/v1", count: 20_000) + "/v1/sign-in", ""),
    ])
    func `a route is found after any prefix`(uri: String, path: String) {
        #expect(Routes.path(of: uri) == path)
    }

    @Test func `an address that begins many connections with TLS has to wait, and one of this machine does not`() {
        let limits = AccessLimits()
        let (near, far) = (ClientAddress("127.0.0.1"), ClientAddress("192.0.2.1"))
        let admitted = (0..<1000).count { _ in limits.admitHandshake(from: far, now: Self.start) }
        #expect(admitted == 500)
        #expect(limits.admitHandshake(from: ClientAddress("192.0.2.2"), now: Self.start))
        #expect(limits.admitHandshake(from: far, now: Self.start + .milliseconds(20)))
        #expect(!limits.admitHandshake(from: far, now: Self.start + .milliseconds(21)))
        #expect((0..<1000).allSatisfy { _ in limits.admitHandshake(from: near, now: Self.start) })
    }

    @Test func `a client's alert is explained in the log`() {
        #expect(
            HandshakeHandler.sentence("TLSV1_ALERT_UNKNOWN_CA at x").contains(
                "does not know the certificate's authority"))
        #expect(HandshakeHandler.sentence("EOF during handshake").contains("ended the handshake"))
    }
}

/// Handshakes that do not end.
@Suite struct HandshakeTests {
    @Test(arguments: [false, true])
    func `a handshake has ten seconds`(completes: Bool) throws {
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandler(
            HandshakeHandler(client: ClientAddress("192.0.2.1"), refusals: RefusalLog()))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        channel.embeddedEventLoop.advanceTime(by: .seconds(9))
        #expect(channel.isActive)
        if completes {
            channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: nil))
        }
        channel.embeddedEventLoop.advanceTime(by: .seconds(2))
        #expect(channel.isActive == completes)
    }

    @Test func `a flood of bytes that are no text is answered once`() throws {
        let channel = EmbeddedChannel(handler: PlainRequestHandler())
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        for _ in 0..<20 { _ = try? channel.writeInbound(ByteBuffer(repeating: 0xff, count: 2048)) }
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        #expect(try channel.readOutbound(as: ByteBuffer.self) != nil)
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
        #expect(!channel.isActive)
    }

    @Test func `a connection that ends within its handshake is not logged, and another failure is`() throws {
        let lines = LogLines()
        let log = LogQueue(lines.logger)
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandler(
            HandshakeHandler(client: ClientAddress("192.0.2.1"), refusals: RefusalLog(log)))
        channel.pipeline.fireErrorCaught(NIOSSLError.handshakeFailed(.sslError([.eofDuringHandshake])))
        log.drain()
        #expect(lines.all.isEmpty)
        channel.pipeline.fireErrorCaught(NIOSSLError.handshakeFailed(.sslError([])))
        log.drain()
        #expect(lines.all.count == 1)
    }

    @Test(arguments: [[0x47, 0x45], [22, 3, 1]] as [[UInt8]])
    func `plain bytes do not reach the TLS handler, and end the connection after two seconds`(bytes: [UInt8]) throws {
        let channel = EmbeddedChannel(handler: PlainRequestHandler())
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        let isTLS = bytes[0] == 22
        #expect((try channel.readInbound(as: ByteBuffer.self) != nil) == isTLS)
        channel.embeddedEventLoop.advanceTime(by: .seconds(3))
        #expect(channel.isActive == isTLS)
        let answer = try channel.readOutbound(as: ByteBuffer.self)
        #expect(answer.map { String(buffer: $0).hasPrefix("HTTP/1.1 400") } ?? isTLS)
    }
}

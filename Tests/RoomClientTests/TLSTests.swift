import ClientCore
import Foundation
import Logging
import NIOCore
import NIOPosix
import RoomProtocol
import RoomTLS
import Synchronization
import TestSupport
import Testing

@testable import RoomClient
@testable import RoomServer

/// A server with TLS as clients and strangers meet it.
@Suite(.timeLimit(.minutes(1))) struct TLSTests {
    private let folder = TemporaryFolder()
    private static let key = ServiceKey(id: "test", secret: "a secret for tests")

    /// Runs the test, and always stops the server.
    private func withServer(
        _ made: MadeCertificate?, _ body: (RoomServer, _ authority: ServerTrust) async throws -> Void
    ) async throws {
        var configuration = RoomServer.Configuration(
            service: Self.key, log: Logger(label: "server") { _ in SwiftLogNoOpLogHandler() })
        configuration.port = 0
        configuration.tls = made.map { TLSFiles(certificate: $0.certificate, key: $0.key) }
        let server = try await RoomServer.start(configuration)
        do {
            try await body(server, .authorities(made?.authority ?? ""))
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private func location(_ address: ServerAddress, _ trust: ServerTrust) -> ServerLocation {
        ServerLocation(address: address, trust: trust, serviceId: Self.key.id, serviceSecret: Self.key.secret)
    }

    /// The error of a sign-in, or nil.
    private func refusal(at address: String, _ trust: ServerTrust) async throws -> RoomError? {
        let address = try ServerAddress(address)
        do throws(RoomError) {
            _ = try await AccessToken.signIn(at: location(address, trust))
            return nil
        } catch {
            return error
        }
    }

    // MARK: - Addresses

    @Test(arguments: [
        ("https://rooms.example", "https://rooms.example", "rooms.example", 443, ""),
        ("WSS://rooms.example/", "wss://rooms.example", "rooms.example", 443, ""),
        ("https://h:8443/api/v1/rpc/", "https://h:8443/api/v1/rpc", "h:8443", 8443, "/api/v1/rpc"),
        ("https://[fd00::5]/p//", "https://[fd00::5]/p", "[fd00::5]", 443, "/p"),
        ("http://h", "http://h:7880", "h:7880", 7880, ""), ("ws://h:1/a%20b", "ws://h:1/a%20b", "h:1", 1, "/a%20b"),
        ("h/p", "ws://h:7880/p", "h:7880", 7880, "/p"),
    ])
    func `an address has a scheme, a port and the prefix of its paths`(
        text: String, shown: String, authority: String, port: Int, path: String
    ) throws {
        let address = try ServerAddress(text)
        #expect(address.description == shown && address.authority == authority)
        #expect(address.port == port && address.path == path)
        #expect(try ServerAddress(address.description) == address)
    }

    @Test func `addresses of one place are equal, whichever scheme names it`() throws {
        let (plain, secure) = (try ServerAddress("http://h"), try ServerAddress("wss://h:7880"))
        #expect(try Set([plain, secure, ServerAddress("ws://h:7880"), ServerAddress("h")]) == [plain, secure])
        #expect(try ServerAddress("https://h:7880/") == secure)
        #expect(plain != secure)
    }

    @Test(arguments: [
        "https://", "https://a?b", "https://a/b?c", "https://a/#b", "https://user:secret@a", "https://a/../b",
        "https://a/b c",
        "https://a/\u{e9}", "https://a:0", "ftp://a", "https:///p", "https://a/b\r\nHost: c",
        "https://a/" + String(repeating: "x", count: 2000),
    ])
    func `an address that would change the request is refused`(text: String) {
        #expect(throws: RoomError.self) { try ServerAddress(text) }
    }

    // MARK: - Certificates

    @Test func `a certificate of a known authority is accepted, by its names, its addresses and any prefix`()
        async throws
    {
        try await withServer(try .chain(in: folder.path)) { server, authority in
            let url = "https://127.0.0.1:\(server.port)"
            #expect(server.url == url)
            #expect(try await refusal(at: url, authority) == nil)
            #expect(try await refusal(at: url + "/any/v1/prefix", authority) == nil)
            let answer = try await HTTPExchange(.get, Signalling.healthPath).run(
                at: try ServerAddress(url), trusting: authority)
            #expect(answer.status == 200 && answer.certificate == server.certificate)
        }
    }

    @Test func `a certificate that is its own authority is accepted if the client knows it`() async throws {
        let (certificate, key) = (folder.file("own.pem"), folder.file("own.key"))
        try MadeCertificate.openssl(
            ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=own", "-out", certificate]
                + ["-keyout", key, "-addext", "subjectAltName=IP:127.0.0.1"], in: folder.path)
        let made = MadeCertificate(certificate: certificate, key: key, authority: certificate)
        try await withServer(made) { server, authority in
            #expect(try await refusal(at: server.url, authority) == nil)
            let error = try await refusal(at: server.url, .system)
            #expect(error?.code == .serverCertificate)
            #expect(error?.message.contains("not signed by an authority that this machine knows") == true)
        }
    }

    @Test(arguments: [
        ("DNS:rooms.example", "20200101000000Z", "21200101000000Z", "is not for 127.0.0.1 but for rooms.example"),
        ("IP:127.0.0.1", "20200101000000Z", "20200201000000Z", "has expired on 2020-02-01"),
        ("IP:127.0.0.1", "21190101000000Z", "21200101000000Z", "is valid from 2119-01-01 on"),
    ])
    func `a certificate that is not accepted is refused with the reason`(
        names: String, from: String, to: String, reason: String
    ) async throws {
        let made = try MadeCertificate.chain(in: folder.path, names: names, days: (from: from, to: to))
        try await withServer(made) { server, authority in
            let error = try await refusal(at: server.url, authority)
            #expect(error?.code == .serverCertificate && error?.message.contains(reason) == true, "\(error as Any)")
        }
    }

    @Test func `a certificate of another authority is refused, also one of the same name`() async throws {
        let made = try MadeCertificate.chain(in: folder.path)
        try FileManager.default.createDirectory(atPath: folder.file("other"), withIntermediateDirectories: false)
        let other = try MadeCertificate.chain(in: folder.file("other"))
        try await withServer(made) { server, _ in
            let error = try await refusal(at: server.url, .authorities(other.authority))
            #expect(error?.code == .serverCertificate && error?.message.contains(other.authority) == true)
            #expect(try await refusal(at: server.url, .authorities(made.key))?.code == .settingInvalid)
        }
    }

    @Test func `clients of the same user trust the certificate in the server file, and no other one`() async throws {
        let made = try MadeCertificate.chain(in: folder.path, names: "DNS:rooms.example")
        try await withServer(made) { server, _ in
            let path = folder.file("run/server.json")
            var file = ServerFile(
                server: server.url, serviceId: Self.key.id, serviceSecret: Self.key.secret,
                certificate: server.certificate?.pem)
            try file.write(to: path)
            let location = try ServerLocator(environment: [:], filePath: path).locate()
            #expect(location.trust == .serverFile(path))
            _ = try await AccessToken.signIn(at: location)
            // The file is read for each connection.
            let other = try MadeCertificate.chain(in: folder.path, name: "other", names: "DNS:rooms.example")
            file.certificate = try String(contentsOfFile: other.certificate, encoding: .utf8)
            try file.write(to: path)
            let refused = try await refusal(at: server.url, location.trust)
            #expect(refused?.code == .serverCertificate && refused?.message.contains("server file") == true)
            try FileManager.default.removeItem(atPath: path)
            #expect(try await refusal(at: server.url, location.trust)?.code == .serverUnreachable)
            // Another address, or authorities that are named, have nothing to do with the file.
            try file.write(to: path)
            func trust(_ server: String?, _ variables: [String: String], _ authorities: String? = nil) throws
                -> ServerTrust
            {
                try ServerLocator(
                    server: server, authorities: authorities, environment: variables, filePath: path
                ).locate().trust
            }
            #expect(try trust("https://rooms.example", [:]) == .system)
            #expect(try trust(server.url, [:]) == .serverFile(path))
            #expect(try trust(nil, [:], "b.pem") == .authorities("b.pem"))
            // Those of the environment may be meant for another server.
            let environment = ["CONNECTLIVE_CA": "a.pem"]
            #expect(try trust(nil, environment) == .serverFile(path))
            #expect(try trust("https://rooms.example", environment) == .authorities("a.pem"))
            #expect(try trust(nil, environment, "b.pem") == .authorities("b.pem"))
            // Also if the caller has the key, and needs nothing else of the file.
            let complete = ServerLocator(
                server: server.url, serviceId: "a", serviceSecret: "b", environment: [:], filePath: path)
            #expect(try complete.locate().trust == .serverFile(path))
        }
    }

    @Test func `while the server file names another server, clients of the first use its last certificate`()
        async throws
    {
        let made = try MadeCertificate.chain(in: folder.path, names: "DNS:rooms.example")
        try await withServer(made) { server, _ in
            let path = folder.file("run/server.json")
            let first = ServerFile(
                server: server.url, serviceId: Self.key.id, serviceSecret: Self.key.secret,
                certificate: server.certificate?.pem)
            var second = first
            second.server = "https://127.0.0.1:1"
            let other = try MadeCertificate.chain(in: folder.path, name: "other")
            second.certificate = try String(contentsOfFile: other.certificate, encoding: .utf8)
            try second.write(to: path)
            // The file has never named this server.
            #expect(try await refusal(at: server.url, .serverFile(path))?.code == .serverUnreachable)
            try first.write(to: path)
            #expect(try await refusal(at: server.url, .serverFile(path)) == nil)
            try second.write(to: path)
            #expect(try await refusal(at: server.url, .serverFile(path)) == nil)
        }
    }

    @Test(arguments: [
        ("IP:127.0.0.1", false), ("IP:127.0.0.1,DNS:rooms.example", false), ("DNS:localhost", true),
        ("DNS:LocalHost,IP:192.0.2.1", true), ("", false),
    ])
    func `a host name has to be in the certificate, where its address and a common name do not count`(
        names: String, isAccepted: Bool
    ) async throws {
        let (certificate, key) = (folder.file("own.pem"), folder.file("own.key"))
        try MadeCertificate.openssl(
            ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"]
                + ["-out", certificate, "-keyout", key]
                + (names.isEmpty ? [] : ["-addext", "subjectAltName=\(names)"]), in: folder.path)
        try await withServer(MadeCertificate(certificate: certificate, key: key, authority: certificate)) {
            server, authority in
            let url = "https://localhost:\(server.port)"
            let error = try await refusal(at: url, authority)
            #expect((error == nil) == isAccepted, "\(error as Any)")
            guard !isAccepted else { return }
            #expect(error?.code == .serverCertificate)
            #expect(error?.message.contains("is not for localhost") == true, "\(error as Any)")
            // Without leaving the check to another kind of connection.
            do throws(RoomError) {
                _ = try await SignallingPipe.open(to: try ServerAddress(url), trusting: authority) { _ in true }
                Issue.record("The connection opened.")
            } catch {
                #expect(error.code == .serverCertificate)
            }
        }
    }

    @Test func `the names of a certificate that is not accepted are shown if they are names`() throws {
        let names = [
            "a\u{1b}[2J", "rooms.example", "b c", String(repeating: "d", count: 254), "*.rooms.example", "::1",
        ]
        let made = try MadeCertificate.chain(in: folder.path)
        let certificate = try PEMFile.certificates(made.certificate)[0]
        let error = CertificateExamination.error(
            try ServerAddress("https://h"), .system, true,
            ServerCertificate(certificate, names: names), now: 1_700_000_000)
        #expect(error.message.contains("is not for h but for rooms.example, *.rooms.example, ::1."), "\(error)")
    }

    // MARK: - The wrong door

    @Test func `TLS to a plain port, and plain to a port with TLS, are told apart from a server that is not there`()
        async throws
    {
        try await withServer(nil) { server, _ in
            let error = try await refusal(at: "https://127.0.0.1:\(server.port)", .system)
            #expect(error?.code == .serverUnreachable)
            #expect(error?.message.contains("it answers without TLS") == true, "\(error as Any)")
            // An attacker can make this error, and no text may talk users into sending the secret in clear.
            for scheme in ["ws:", "http:"] { #expect(error?.message.contains(scheme) == false, "\(error as Any)") }
        }
        try await withServer(try .chain(in: folder.path)) { server, _ in
            let error = try await refusal(at: "ws://127.0.0.1:\(server.port)", .system)
            #expect(error?.code == .serverUnreachable)
            #expect(error?.message.contains("Use an address with https://") == true, "\(error as Any)")
            do throws(RoomError) {
                _ = try await SignallingPipe.open(to: try ServerAddress("ws://127.0.0.1:\(server.port)")) { _ in true }
                Issue.record("The connection opened.")
            } catch {
                #expect(error.message.contains("Use an address with https://"), "\(error)")
            }
        }
    }

    @Test func `bytes of no protocol end the connection, and others go on`() async throws {
        try await withServer(try .chain(in: folder.path)) { server, authority in
            for bytes in [[22, 3, 1, 255, 255] + [UInt8](repeating: 7, count: 300), [0, 1, 2], [128, 46, 1, 3, 1]]
                as [[UInt8]]
            {
                let channel = try await Self.connect(to: server.port)
                try await channel.writeAndFlush(ByteBuffer(bytes: bytes))
                try await Self.closed(channel)
            }
            #expect(try await refusal(at: server.url, authority) == nil)
        }
    }

    private static func connect(to port: Int) async throws -> any Channel {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(host: "127.0.0.1", port: port)
            .get()
    }

    private static func closed(_ channel: any Channel) async throws {
        let flag = Flag()
        channel.closeFuture.whenComplete { _ in flag.set() }
        try await requireEventually(within: 30, "the server closes") { flag.isSet }
    }

    private final class Flag: Sendable {
        private let value = Atomic<Bool>(false)
        var isSet: Bool { value.load(ordering: .relaxed) }
        func set() { value.store(true, ordering: .relaxed) }
    }

    @Test func `a client with TLS that does not read is dropped`() async throws {
        try await withServer(try .chain(in: folder.path)) { server, authority in
            let tls = try TLSClient(to: try ServerAddress(server.url), trusting: authority)
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try tls.addHandler(to: channel) }
                }
                .connect(host: "127.0.0.1", port: server.port).get()
            let flag = Flag()
            channel.closeFuture.whenComplete { _ in flag.set() }
            let request = "GET /main.js HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\n\r\n"
            try await channel.writeAndFlush(ByteBuffer(string: request))
            try await channel.setOption(.autoRead, value: false).get()
            try await requireEventually(within: 30, "the server closes") {
                channel.writeAndFlush(ByteBuffer(string: String(repeating: request, count: 50)), promise: nil)
                return flag.isSet
            }
        }
    }

    // MARK: - Another certificate

    @Test func `while the certificate is replaced, every connection succeeds, and those that are open go on`()
        async throws
    {
        let used = TLSFiles(certificate: folder.file("used.pem"), key: folder.file("used.key"))
        let authorities = folder.file("authorities.pem")
        let all = try (0..<3).map { try MadeCertificate.chain(in: folder.path, name: "n\($0)") }
        func copy(_ made: MadeCertificate) throws {
            for (from, to) in [(made.certificate, used.certificate), (made.key, used.key)] {
                try Data(contentsOf: URL(fileURLWithPath: from)).write(to: URL(fileURLWithPath: to))
            }
        }
        try all.map { try String(contentsOfFile: $0.authority, encoding: .utf8) }.joined()
            .write(toFile: authorities, atomically: true, encoding: .utf8)
        try copy(all[0])
        let made = MadeCertificate(certificate: used.certificate, key: used.key, authority: authorities)
        try await withServer(made) { server, authority in
            let address = try ServerAddress(server.url)
            let location = location(address, authority)
            // Another connection of the same server, which has no time limit once it has joined.
            let (joined, lost) = (Flag(), Flag())
            let engine = RoomEngine { event in
                switch event {
                case .connected: joined.set()
                case .reconnecting, .ended: lost.set()
                default: break
                }
            }
            engine.connect(to: try RoomName("room"), with: try await AccessToken.signIn(at: location).token)
            try await requireEventually(within: 20, "the room") { joined.isSet }
            let ended = Flag()
            let connecting = (0..<3).map { _ in
                Task {
                    var count = 0
                    while !ended.isSet {
                        _ = try await AccessToken.signIn(at: location)
                        count += 1
                    }
                    return count
                }
            }
            var seen: [ServerCertificate?] = []
            for index in [1, 2, 0, 1, 2] {
                try copy(all[index])
                for _ in 0..<2 { server.tls?.check() }
                let answer = try await HTTPExchange(.get, Signalling.healthPath).run(at: address, trusting: authority)
                seen.append(answer.certificate)
            }
            ended.set()
            for task in connecting { #expect(try await task.value > 0) }
            #expect(Set(seen.compactMap { $0?.pem }).count == 3)
            #expect(!lost.isSet)
            engine.disconnect()
            try await requireEventually(within: 20, "the end") { lost.isSet }
        }
    }
}

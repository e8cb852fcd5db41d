import COpenSSL
import PeerSession
import RTP
import Testing

@testable import PeerIO
import PeerLoop

/// Two engines and the datagrams between them, without sockets.
final class Handshake {
    let client: OpenSSLDTLS
    let server: OpenSSLDTLS
    var now = EventLoop.now
    var datagrams = 0
    var longest = 0
    /// Returns whether datagram `number` (from 0, both directions) is lost.
    var loses: (Int) -> Bool = { _ in false }
    /// Changes the datagrams of one end in transit.
    var carries: ([[UInt8]]) -> [[UInt8]] = { $0 }

    init(
        client: Certificate, server: Certificate, clientExpects: [Fingerprint]? = nil,
        serverExpects: [Fingerprint]? = nil, mtu: Int = OpenSSLDTLS.mtu
    )
        throws
    {
        self.client = try OpenSSLDTLS(certificate: client, mtu: mtu)
        self.server = try OpenSSLDTLS(certificate: server, mtu: mtu)
        self.server.start(role: .server, expecting: serverExpects ?? [client.fingerprint], now: now)
        self.client.start(role: .client, expecting: clientExpects ?? [server.fingerprint], now: now)
    }

    /// Delivers the waiting datagrams of both directions. Returns false if there were none.
    func exchange() -> Bool {
        var moved = false
        for (from, to) in [(client, server), (server, client)] {
            var batch = DatagramBatch()
            from.drain(into: &batch)
            for datagram in carries((0..<batch.count).map { Array(batch[$0]) }) {
                moved = true
                longest = max(longest, datagram.count)
                defer { datagrams += 1 }
                guard !loses(datagrams) else { continue }
                var packet = PacketBuffer()
                _ = packet.assign(datagram)
                to.receive(packet, now: now)
            }
        }
        return moved
    }

    /// Runs until no datagram waits and no handshake timer runs. Uses the real clock, because OpenSSL's timer does.
    func run(within limit: TimeInterval = .seconds(10)) async {
        let end = EventLoop.now + limit
        while EventLoop.now < end {
            now = EventLoop.now
            if exchange() { continue }
            let next = min(client.nextTimeout, server.nextTimeout)
            guard next != .never else { return }
            if next > now { try? await Task.sleep(for: .nanoseconds((next - now).nanoseconds)) }
            now = EventLoop.now
            client.handleTimeout(now: now)
            server.handleTimeout(now: now)
        }
    }

    var keys: (client: SRTPKeys, server: SRTPKeys)? {
        guard let a = client.exportKeys(), let b = server.exportKeys() else { return nil }
        return (a, b)
    }
}

struct DTLSTests {
    @Test("two ends agree on GCM and on matching keys")
    func handshake() async throws {
        let handshake = try Handshake(client: try Certificate(), server: try Certificate())
        await handshake.run()
        let keys = try #require(handshake.keys)
        #expect(keys.client.profile == .aeadAES128GCM)
        #expect(keys.client.local == keys.server.remote)
        #expect(keys.client.remote == keys.server.local)
        #expect(keys.client.local != keys.client.remote)
        #expect(keys.client.local.count == 28)
        #expect(handshake.longest <= 1200)
    }

    @Test("the server's preference for GCM wins over a client that prefers AES-CM")
    func preference() async throws {
        let handshake = try Handshake(
            client: try Certificate(profiles: [.aes128CMSHA1_80, .aeadAES128GCM]), server: try Certificate())
        await handshake.run()
        #expect(try #require(handshake.keys).server.profile == .aeadAES128GCM)
    }

    @Test("a peer that offers only AES-CM gets it, in either role", arguments: [true, false])
    func fallback(clientIsOld: Bool) async throws {
        let old = try Certificate(profiles: [.aes128CMSHA1_80])
        let new = try Certificate()
        let handshake = try Handshake(client: clientIsOld ? old : new, server: clientIsOld ? new : old)
        await handshake.run()
        let keys = try #require(handshake.keys)
        #expect(keys.client.profile == .aes128CMSHA1_80)
        #expect(keys.server.local.count == 30)
    }

    @Test("S4: a server with another certificate than signalled gets no keys")
    func wrongServer() async throws {
        let stranger = try Certificate()
        let handshake = try Handshake(
            client: try Certificate(), server: try Certificate(), clientExpects: [stranger.fingerprint])
        await handshake.run()
        guard case .failed(let reason) = handshake.client.progress else {
            Issue.record("the client went on: \(handshake.client.progress)")
            return
        }
        #expect(reason.contains("fingerprint"))
        if case .connected = handshake.server.progress { Issue.record("the server got keys") }
    }

    @Test("S4: a client with another certificate than signalled gets no keys")
    func wrongClient() async throws {
        let stranger = try Certificate()
        let handshake = try Handshake(
            client: try Certificate(), server: try Certificate(), serverExpects: [stranger.fingerprint])
        await handshake.run()
        guard case .failed(let reason) = handshake.server.progress else {
            Issue.record("the server went on: \(handshake.server.progress)")
            return
        }
        #expect(reason.contains("fingerprint"))
        if case .connected = handshake.client.progress { Issue.record("the client got keys") }
    }

    @Test("one matching fingerprint among several is enough; a weak digest never is")
    func severalFingerprints() async throws {
        let server = try Certificate()
        let wrong = Fingerprint(algorithm: "sha-256", digest: [UInt8](repeating: 7, count: 32))
        let good = try Handshake(
            client: try Certificate(), server: server, clientExpects: [wrong, server.fingerprint])
        await good.run()
        #expect(good.keys != nil)
        let weak = Fingerprint(algorithm: "sha-1", digest: [UInt8](repeating: 7, count: 20))
        let bad = try Handshake(client: try Certificate(), server: server, clientExpects: [weak])
        await bad.run()
        #expect(bad.keys == nil)
    }

    @Test("each datagram of the handshake may be lost once", arguments: 0..<6)
    func loss(lost: Int) async throws {
        let handshake = try Handshake(client: try Certificate(), server: try Certificate())
        handshake.loses = { $0 == lost }
        await handshake.run()
        #expect(handshake.keys != nil)
        // One flight is sent again, not one after another.
        #expect(handshake.datagrams < 20, "\(handshake.datagrams)")
    }

    @Test("a fragmented ClientHello is reassembled", arguments: [300, 1200])
    func fragments(mtu: Int) async throws {
        let certificate = try Certificate()
        // As long as a browser's hello with a post-quantum key share, through ALPN names that no server selects.
        let names = [UInt8]((0..<20).flatMap { _ in [70] + [UInt8](repeating: 0x78, count: 70) })
        try #require(SSL_CTX_set_alpn_protos(certificate.context, names, UInt32(names.count)) == 0)
        let handshake = try Handshake(client: certificate, server: try Certificate(), mtu: mtu)
        var first: Int?
        handshake.carries = { datagrams in
            first = first ?? datagrams.count
            return datagrams
        }
        await handshake.run()
        #expect(try #require(first) > 1)
        #expect(handshake.longest <= mtu)
        #expect(handshake.keys != nil)
    }

    @Test("the handshake survives duplicated and reordered flights", arguments: 1...20)
    func shuffled(seed: UInt64) async throws {
        let handshake = try Handshake(client: try Certificate(), server: try Certificate(), mtu: 300)
        var random = Shuffle(state: seed)
        handshake.carries = { datagrams in
            (datagrams + datagrams.filter { _ in Bool.random(using: &random) }).shuffled(using: &random)
        }
        await handshake.run()
        let keys = try #require(handshake.keys)
        #expect(keys.client.local == keys.server.remote)
    }

    @Test("a server with an RSA certificate is accepted")
    func serverWithRSA() async throws {
        let server = try Certificate()
        let key = try #require(rsaKey())
        defer { EVP_PKEY_free(key) }
        let certificate = try #require(Certificate.makeCertificate(for: key))
        defer { X509_free(certificate) }
        let fingerprint = try #require(Certificate.digest(of: certificate, algorithm: "sha-256"))
        try #require(SSL_CTX_use_certificate(server.context, certificate) == 1)
        try #require(SSL_CTX_use_PrivateKey(server.context, key) == 1)
        // The context still holds its ECDSA key.
        try #require(SSL_CTX_set_cipher_list(server.context, "ECDHE-RSA-AES128-GCM-SHA256") == 1)
        let handshake = try Handshake(client: try Certificate(), server: server, clientExpects: [fingerprint])
        await handshake.run()
        #expect(handshake.keys != nil)
    }

    @Test("every cipher suite is forward-secret and an AEAD")
    func suites() {
        for suite in Certificate.cipherSuites.split(separator: ":") {
            #expect(suite.hasPrefix("ECDHE-") && (suite.contains("-GCM-") || suite.contains("-POLY1305")), "\(suite)")
        }
    }

    @Test("S6: undersized and malformed records do not stop a handshake")
    func noise() async throws {
        let handshake = try Handshake(client: try Certificate(), server: try Certificate())
        var generator = SystemRandomNumberGenerator()
        func disturb() {
            for length in [0, 1, 5, 12, 13, 14, 60, 1400] {
                var packet = PacketBuffer()
                var bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
                if length > 0 { bytes[0] = 22 }
                if length > 12 {
                    bytes.replaceSubrange(1..<13, with: [0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 200, 0xff, 0xff])
                }
                _ = packet.assign(bytes)
                handshake.server.receive(packet, now: handshake.now)
                handshake.client.receive(packet, now: handshake.now)
            }
        }
        disturb()
        while handshake.exchange() { disturb() }
        await handshake.run()
        #expect(handshake.keys != nil)
    }

    @Test func `a released end still notifies the other one of its close, once, and reads nothing more`() async throws {
        let handshake = try Handshake(client: try Certificate(), server: try Certificate())
        await handshake.run()
        handshake.server.release()
        handshake.server.release()
        #expect(!handshake.exchange())
        handshake.client.close()
        _ = handshake.exchange()
        guard case .connected = handshake.server.progress else {
            Issue.record("A released end read a datagram.")
            return
        }
        let other = try Handshake(client: try Certificate(), server: try Certificate())
        await other.run()
        other.server.release()
        #expect(other.server.exportKeys() == nil)
        other.server.close()
        other.server.close()
        _ = other.exchange()
        guard case .closed = other.client.progress else {
            Issue.record("The client was not notified.")
            return
        }
    }

    @Test("close notifies the other end")
    func close() async throws {
        let handshake = try Handshake(client: try Certificate(), server: try Certificate())
        await handshake.run()
        handshake.client.close()
        _ = handshake.exchange()
        guard case .closed = handshake.server.progress else {
            Issue.record("\(handshake.server.progress)")
            return
        }
    }
}

private func rsaKey() -> OpaquePointer? {
    guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, nil) else { return nil }
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048) == 1,
        EVP_PKEY_keygen(context, &key) == 1
    else { return nil }
    return key
}

/// SplitMix64.
private struct Shuffle: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

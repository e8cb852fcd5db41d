import NIOHTTP1
import RTP
import RoomProtocol
import Testing

@testable import RoomServer
@testable import ServerCore

@Suite("S13 tokens") struct AccessTokenTests {
    private let start = MonotonicTime.zero + .seconds(1)

    @Test func `a token is 32 random bytes and permits its scope`() throws {
        let tokens = AccessTokens()
        let a = try tokens.issue(.everyRoom, lifetime: .seconds(10), now: start)
        let b = try tokens.issue(.oneRoom(RoomName("kitchen")), lifetime: .seconds(10), now: start)
        #expect(a.accessToken.utf8.count == 43)
        #expect(a.accessToken != b.accessToken)
        #expect(try tokens.scope(of: a.accessToken, now: start) == .everyRoom)
        #expect(try tokens.scope(of: b.accessToken, now: start) == .oneRoom(RoomName("kitchen")))
    }

    @Test func `an expired, revoked, altered, empty or invented token is refused`() throws {
        let tokens = AccessTokens()
        let good = try tokens.issue(.everyRoom, lifetime: .seconds(10), now: start).accessToken
        let jwtWithoutAlgorithm = "eyJhbGciOiJub25lIn0.eyJhZG1pbiI6dHJ1ZX0."
        let altered = String(good.dropLast()) + (good.hasSuffix("A") ? "B" : "A")
        for token in ["", "x", jwtWithoutAlgorithm, altered, String(good.prefix(12)), good + "A"] {
            let error = #expect(throws: RoomError.self) { try tokens.scope(of: token, now: start) }
            #expect(error?.code == .tokenInvalid)
        }
        #expect(throws: RoomError.self) { try tokens.scope(of: good, now: start + .seconds(10)) }
        let other = try tokens.issue(.everyRoom, lifetime: .seconds(10), now: start).accessToken
        #expect(tokens.revoke(other))
        #expect(!tokens.revoke(other))
        #expect(throws: RoomError.self) { try tokens.scope(of: other, now: start) }
    }

    @Test func `tokens are limited, and expired ones make room`() throws {
        let tokens = AccessTokens(capacity: 3)
        for _ in 0..<3 { _ = try tokens.issue(.everyRoom, lifetime: .seconds(10), now: start) }
        let error = #expect(throws: RoomError.self) {
            try tokens.issue(.everyRoom, lifetime: .seconds(10), now: start)
        }
        #expect(error?.code == .serverFull)
        _ = try tokens.issue(.everyRoom, lifetime: .seconds(10), now: start + .seconds(11))
        #expect(tokens.count == 1)
    }

    @Test func `pages cannot use up the tokens that sign-ins need`() throws {
        let tokens = AccessTokens(capacity: 6)
        let room = AccessTokens.Scope.oneRoom(try RoomName("kitchen"))
        let pages = try (0..<4).map { second in
            try tokens.issue(room, lifetime: .seconds(10), now: start + .seconds(second)).accessToken
        }
        #expect(tokens.count == 3)
        // A new page takes the place of the oldest one.
        #expect(throws: RoomError.self) { try tokens.scope(of: pages[0], now: start + .seconds(4)) }
        for page in pages.dropFirst() { #expect(try tokens.scope(of: page, now: start + .seconds(4)) == room) }
        for _ in 0..<3 { _ = try tokens.issue(.everyRoom, lifetime: .seconds(10), now: start) }
    }

    @Test func `a service with an empty secret admits no client`() {
        #expect(!ServiceKey(id: "a", secret: "").admits(id: "a", secret: ""))
        #expect(ServiceKey(id: "a", secret: "s").admits(id: "a", secret: "s"))
        #expect(!ServiceKey(id: "a", secret: "s").admits(id: "a", secret: "S"))
        #expect(!ServiceKey(id: "a", secret: "s").admits(id: "b", secret: "s"))
    }
}

@Suite("S14 origins") struct OriginPolicyTests {
    private let loopback = OriginPolicy(isLoopbackOnly: true, isOpen: false)

    @Test func `a page of another origin is refused, a client other than a browser is not`() {
        #expect(loopback.admits(["host": "127.0.0.1:7880"]))
        #expect(loopback.admits(["host": "127.0.0.1:7880", "origin": "http://127.0.0.1:7880"]))
        #expect(loopback.admits(["host": "localhost:7880", "origin": "https://localhost:7880"]))
        #expect(!loopback.admits(["host": "127.0.0.1:7880", "origin": "http://evil.example"]))
        #expect(!loopback.admits(["host": "127.0.0.1:7880", "origin": "null"]))
        #expect(loopback.admits(["host": "127.0.0.2:7880"]))
        #expect(!loopback.admits(["host": "127.evil.example:7880"]))
        // DNS rebinding: the page's own name resolves to this server.
        #expect(!loopback.admits(["host": "evil.example:7880", "origin": "http://evil.example:7880"]))
    }

    @Test func `a client whose proxy runs on this machine is not local`() {
        let local: HTTPHeaders = ["host": "localhost:7880"]
        #expect(loopback.isLocal(local, peerIsLoopback: true))
        #expect(!loopback.isLocal(local, peerIsLoopback: false))
        #expect(!loopback.isLocal(["host": "rooms.example"], peerIsLoopback: true))
        #expect(loopback.place(of: ["host": "rooms.example"], peerIsLoopback: true) == .unknown)
        #expect(loopback.place(of: ["host": "rooms.example"], peerIsLoopback: false) == .elsewhere)
        for (name, value) in [("Forwarded", "for=192.0.2.1"), ("X-Forwarded-For", "192.0.2.1"), ("Via", "1.1 proxy")] {
            var forwarded = local
            forwarded.add(name: name, value: value)
            #expect(loopback.place(of: forwarded, peerIsLoopback: true) == .elsewhere, "\(name)")
            #expect(!loopback.admitsToken(forwarded, peerIsLoopback: true), "\(name)")
        }
    }

    @Test func `a page gets a token on loopback, and beyond it only from an open server`() {
        let mine: HTTPHeaders = ["host": "127.0.0.1:7880", "sec-fetch-site": "same-origin"]
        #expect(loopback.admitsToken(mine, peerIsLoopback: true))
        #expect(
            !loopback.admitsToken(["host": "127.0.0.1:7880", "sec-fetch-site": "cross-site"], peerIsLoopback: true))
        let elsewhere: HTTPHeaders = ["host": "192.0.2.1:7880"]
        #expect(!OriginPolicy(isLoopbackOnly: false, isOpen: false).admitsToken(elsewhere, peerIsLoopback: false))
        #expect(OriginPolicy(isLoopbackOnly: false, isOpen: true).admitsToken(elsewhere, peerIsLoopback: false))
    }

    @Test func `behind a proxy on this machine, the page's address may be that of X-Forwarded-Host`() {
        let policy = OriginPolicy(isLoopbackOnly: false, isOpen: true)
        let proxied: HTTPHeaders = [
            "host": "127.0.0.1:7880", "origin": "https://rooms.example", "x-forwarded-host": "rooms.example",
        ]
        #expect(policy.admits(proxied))
        #expect(loopback.admits(proxied))
        // Only a proxy on this machine is trusted, and only for the page's address.
        #expect(!policy.admits(proxied, peerIsLoopback: false))
        #expect(!loopback.admits(["host": "rooms.example", "x-forwarded-host": "127.0.0.1:7880"]))
        var other = proxied
        other.replaceOrAdd(name: "x-forwarded-host", value: "other.example")
        #expect(!policy.admits(other))
        #expect(loopback.place(of: ["host": "127.0.0.1", "x-forwarded-host": "a"], peerIsLoopback: true) == .elsewhere)
    }

    @Test func `the pages of a server with TLS are those of https`() {
        let policy = OriginPolicy(isLoopbackOnly: false, isOpen: true, isEncrypted: true)
        #expect(policy.admits(["host": "rooms.example:7880", "origin": "https://rooms.example:7880"]))
        #expect(!policy.admits(["host": "rooms.example:7880", "origin": "http://rooms.example:7880"]))
        #expect(policy.admits(["host": "rooms.example:7880"]))
    }

    @Test func `a refusal names its cause`() {
        func refusal(_ policy: OriginPolicy, _ headers: HTTPHeaders) -> String {
            do throws(RoomError) {
                try policy.checkPageToken(headers, peerIsLoopback: true)
                return ""
            } catch { return error.message }
        }
        let openOnLoopback = OriginPolicy(isLoopbackOnly: true, isOpen: true)
        let here = refusal(openOnLoopback, ["host": "rooms.example"])
        #expect(here.contains("listens on loopback") && here.contains("'rooms.example'") && !here.contains("--open"))
        let origin = refusal(openOnLoopback, ["host": "127.0.0.1:7880", "origin": "https://rooms.example"])
        #expect(origin.contains("'https://rooms.example'") && origin.contains("Host header"))
        let forwarded: HTTPHeaders = ["host": "127.0.0.1:7880", "x-forwarded-for": "192.0.2.1"]
        #expect(refusal(loopback, forwarded).hasSuffix("and with --listen and an address that other machines reach."))
        #expect(refusal(OriginPolicy(isLoopbackOnly: false, isOpen: false), forwarded).hasSuffix("machines join."))
        #expect(
            refusal(openOnLoopback, ["host": "localhost", "sec-fetch-site": "cross-site"]).contains("its own page"))
    }
}

extension OriginPolicy {
    fileprivate func admits(_ headers: HTTPHeaders, peerIsLoopback: Bool = true) -> Bool {
        (try? checkOrigin(headers, peerIsLoopback: peerIsLoopback)) != nil
    }

    fileprivate func admitsToken(_ headers: HTTPHeaders, peerIsLoopback: Bool) -> Bool {
        (try? checkPageToken(headers, peerIsLoopback: peerIsLoopback)) != nil
    }
}

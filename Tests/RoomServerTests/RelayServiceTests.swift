import Foundation
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

struct RelayServiceTests {
    private let url = "turn:turn.example.org?transport=tcp"

    @Test
    func `the password is the HMAC of a user that begins with the end of its validity, and is the same for one token`()
        throws
    {
        let service = try RelayService(urls: ["stun:a", url], key: .secret("north"), lifetime: 3600)
        let list = service.servers(for: "t-1", at: 1_700_000_000)
        // printf "token t-1" | openssl dgst -sha1 -hmac north | head -c 16; then printf %s USER | openssl dgst -sha1 -hmac north -binary | base64
        #expect(
            list == [
                ICEServerInfo(urls: ["stun:a"]),
                ICEServerInfo(
                    urls: [url], username: "1700003600:b23cfa07278b0bfe", credential: "i3joxwFmvEEqUoC5gFi2VKK7Z4I="),
            ])
        let long = try RelayService(urls: [url], key: .secret(String(repeating: "n", count: 70)), lifetime: 3600)
        #expect(long.servers(for: "t-1", at: 1_700_000_000).first?.credential == "5N4ggDFZ3+PZx9zVwJUL0ZFeiTw=")
        #expect(service.servers(for: "t-2", at: 1_700_000_000)[1].username != list[1].username)
        // coturn counts the allocations of a user without the time before the colon.
        let later = service.servers(for: "t-1", at: 1_700_000_100)[1].username
        #expect(later?.split(separator: ":").last == list[1].username?.split(separator: ":").last)
    }

    @Test func `a fixed user is given to everybody, and is not renewed`() throws {
        let service = try RelayService(urls: [url], key: .fixed(user: "ada", password: "lovelace"))
        #expect(
            service.servers(for: "t-1") == [ICEServerInfo(urls: [url], username: "ada", credential: "lovelace")])
        #expect(service.renewal == nil)
    }

    @Test func `too many servers, unusable URLs and a TURN server without a key are refused`() {
        for (urls, key) in [
            ([], .secret("s")), (Array(repeating: url, count: 5), .secret("s")), (["http://a"], .secret("s")),
            ([url], nil),
        ] as [([String], RelayService.Key?)] {
            #expect(throws: RoomError.self) { try RelayService(urls: urls, key: key) }
        }
    }

    @Test
    func
        `clients are told the servers when they join, each token with one user, and new passwords before those expire`()
        async throws
    {
        let service = try RelayService(urls: [url], key: .secret("north"), lifetime: 2)
        try await withServer(configured: { $0.relays = service }) { server, grant in
            let (first, joined) = try join(server, grant.accessToken)
            let (_, other) = try join(server, grant.accessToken)
            let told = try #require(joined.iceServers?.first)
            #expect(told.urls == [url])
            func user(_ joined: Joined) -> Substring? { joined.iceServers?.first?.username?.split(separator: ":").last }
            #expect(user(joined) != nil && user(joined) == user(other))
            let message = try first.message { if case .iceServers = $0.message { true } else { false } }
            guard case .iceServers(let renewed) = message.message else { return }
            let before = Int(told.username?.prefix { $0 != ":" } ?? "") ?? .max
            let after = Int(renewed.iceServers.first?.username?.prefix { $0 != ":" } ?? "") ?? 0
            #expect(after > before)
        }
    }

    @Test func `a server without TURN says nothing about it`() async throws {
        try await withServer { server, grant in
            let (_, joined) = try join(server, grant.accessToken)
            #expect(joined.iceServers == nil)
        }
    }
}

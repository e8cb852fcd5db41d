import Foundation
import NIOHTTP1
import RTP
import RoomProtocol
import ServerCore
import Testing

@testable import RoomServer

@Suite struct PaceTests {
    private let start = MonotonicTime.zero + .seconds(1)

    @Test func `a pace admits its burst, then one per interval, and the burst again after a rest`() {
        var pace = Pace(burst: 3, interval: .seconds(2))
        func admitted(at now: MonotonicTime) -> Int {
            var count = 0
            while pace.delay(now: now) == nil {
                pace.count(now: now)
                count += 1
            }
            return count
        }
        #expect(admitted(at: start) == 3)
        #expect(pace.delay(now: start) == .seconds(2))
        #expect(admitted(at: start + .seconds(1)) == 0)
        #expect(admitted(at: start + .seconds(2)) == 1)
        #expect(admitted(at: start + .seconds(6)) == 2)
        #expect(admitted(at: start + .seconds(60)) == 3)
    }

    @Test func `100,000 addresses use bounded memory, and lock out no other address`() {
        var table = PaceTable<Int>(Pace(burst: 1, interval: .seconds(60)), capacity: 1000)
        for address in 0..<100_000 {
            #expect(table.delay(of: address, now: start) == nil)
            table.count(address, now: start)
            #expect(table.delay(of: address, now: start) == .seconds(60))
        }
        #expect(table.count <= 1000)
    }
}

@Suite("S13 limits of sign-in") struct AccessLimitTests {
    private let start = MonotonicTime.zero + .seconds(1)
    private let routes = Routes(
        service: ServiceKey(id: "svc", secret: "right"), tokens: AccessTokens(),
        origins: OriginPolicy(isLoopbackOnly: false, isOpen: true), revoked: { _ in },
        statistics: { ServerStatistics(seconds: 0, loops: []) },
        administration: Administration(hosts: [], removals: Removals()))

    private func signIn(
        _ secret: String, from address: String, headers: HTTPHeaders = [:], at now: MonotonicTime
    ) -> Routes.Response {
        routes.answer(
            HTTPRequestHead(version: .http1_1, method: .POST, uri: Signalling.signInPath, headers: headers),
            body: Array(#"{"serviceId":"svc","serviceSecret":"\#(secret)"}"#.utf8), from: ClientAddress(address),
            now: now)
    }

    @Test func `an address that guesses secrets is refused, even with the right one, until it rests`() throws {
        for _ in 0..<10 { #expect(signIn("wrong", from: "192.0.2.1", at: start).status == .unauthorized) }
        let refusal = signIn("right", from: "192.0.2.1", at: start)
        #expect(refusal.status == .tooManyRequests)
        let problem = try JSONDecoder().decode(Problem.self, from: Data(refusal.body))
        #expect(problem.error.code == .tooManyRequests)
        #expect(problem.message.contains("in 10 s"))
        // Other addresses are not affected, and neither is the machine itself.
        #expect(signIn("right", from: "192.0.2.2", at: start).status == .ok)
        for _ in 0..<20 { #expect(signIn("wrong", from: "127.0.0.1", at: start).status == .unauthorized) }
        #expect(signIn("right", from: "127.0.0.1", at: start).status == .ok)
        #expect(signIn("right", from: "192.0.2.1", at: start + .seconds(10)).status == .ok)
        // A right secret costs nothing.
        for _ in 0..<50 { #expect(signIn("right", from: "192.0.2.3", at: start).status == .ok) }
    }

    @Test func `behind a proxy on this machine, the limits count the address that the proxy added`() {
        func attempt(_ secret: String, _ forwarded: String, peer: String = "127.0.0.1") -> HTTPResponseStatus {
            signIn(secret, from: peer, headers: ["x-forwarded-for": forwarded], at: start).status
        }
        // The client's own claims come first, and change.
        for number in 0..<10 { #expect(attempt("wrong", "198.51.100.\(number), 192.0.2.9") == .unauthorized) }
        #expect(attempt("right", "198.51.100.77, 192.0.2.9") == .tooManyRequests)
        #expect(attempt("right", "192.0.2.9, 192.0.2.10") == .ok)
        #expect(signIn("right", from: "192.0.2.9", at: start).status == .tooManyRequests)
        // Without the header, a program of this machine; with it, never.
        #expect(signIn("right", from: "127.0.0.1", at: start).status == .ok)
        for _ in 0..<10 { #expect(attempt("wrong", "127.0.0.1") == .unauthorized) }
        #expect(attempt("right", "nonsense") == .tooManyRequests)
        // Other peers are no proxies of ours.
        #expect(attempt("right", "192.0.2.9", peer: "203.0.113.1") == .ok)
    }

    @Test func `refusals are logged, once a second for each kind`() {
        let lines = LogLines()
        let queue = LogQueue(lines.logger)
        var routes = routes
        routes.refusals = RefusalLog(queue)
        func attempt(_ address: String, _ headers: HTTPHeaders = [:], at now: MonotonicTime) {
            _ = routes.answer(
                HTTPRequestHead(version: .http1_1, method: .POST, uri: Signalling.signInPath, headers: headers),
                body: Array(#"{"serviceId":"svc","serviceSecret":"wrong"}"#.utf8), from: ClientAddress(address),
                now: now)
        }
        for _ in 0..<30 { attempt("192.0.2.1", at: start) }
        attempt("192.0.2.2", ["host": "a", "origin": "http://b"], at: start)
        attempt("192.0.2.3", at: start + .milliseconds(999))
        attempt("2001:db8::5", at: start + .seconds(1))
        queue.drain()
        #expect(lines.all.count == 4)
        for (line, code) in zip(lines.all, ["-11003", "server.too-many-requests", "-11004", "-11003"]) {
            #expect(line.hasPrefix("info POST /v1/sign-in refused") && line.hasSuffix("[\(code)]"), "\(line)")
        }
        #expect("\(ClientAddress("192.0.2.1")) \(ClientAddress("2001:db8::5"))" == "192.0.2.1 2001:db8:0:0::/64")
    }

    @Test func `refused paths that strangers invent are one kind in the log, and its kinds are bounded`() {
        let lines = LogLines()
        let queue = LogQueue(lines.logger)
        var routes = routes
        routes.refusals = RefusalLog(queue)
        for number in 0..<300 {
            let head = HTTPRequestHead(
                version: .http1_1, method: .DELETE, uri: "\(Signalling.roomsPath)/room-\(number)")
            _ = routes.answer(head, body: [], from: ClientAddress("192.0.2.1"), now: start)
        }
        queue.drain()
        #expect(lines.all.count == 1)
        #expect(lines.all.first?.hasPrefix("info DELETE /v1/rooms/… refused") == true, "\(lines.all)")
        // Kinds of a second that has passed make place for others.
        let error = RoomError(.unauthorized, "Test.")
        for second in 1...2 {
            for number in 0..<300 {
                routes.refusals.write(
                    "event \(second) \(number)", error, ClientAddress("192.0.2.1"), now: start + .seconds(Int64(second))
                )
            }
            queue.drain()
            #expect(lines.all.count == 1 + second * RefusalLog.maximumKinds)
        }
    }

    @Test func `statistics ask for a password, HEAD is answered like GET, and a monitor sees the server's health`() {
        func answer(_ method: HTTPMethod, _ uri: String, _ headers: HTTPHeaders = [:]) -> Routes.Response {
            routes.answer(
                HTTPRequestHead(version: .http1_1, method: method, uri: uri, headers: headers), body: [],
                from: ClientAddress("192.0.2.1"), now: start)
        }
        for headers: HTTPHeaders in [[:], ["authorization": "Basic c3ZjOndyb25n"]] {
            let refused = answer(.GET, Signalling.statisticsPath, headers)
            #expect(refused.status == .unauthorized)
            #expect(refused.headers.map(\.0) == ["www-authenticate"])
            #expect(refused.headers.first?.1.hasPrefix("Basic realm=") == true)
        }
        // A browser would ask the page's visitors for a password.
        #expect(signIn("wrong", from: "192.0.2.1", at: start).headers.isEmpty)
        #expect(answer(.HEAD, "/").status == .ok)
        #expect(answer(.HEAD, "/").body == answer(.GET, "/").body)
        #expect(answer(.GET, "/v1/health").status == .ok)
        #expect(answer(.HEAD, "/v1/health").status == .ok)
    }

    @Test func `the page learns by POST why its WebSocket was refused`() throws {
        func refusal(_ headers: HTTPHeaders) throws -> (HTTPResponseStatus, String) {
            let response = routes.answer(
                HTTPRequestHead(version: .http1_1, method: .POST, uri: Signalling.webSocketPath, headers: headers),
                body: [], from: ClientAddress("127.0.0.1"), now: start)
            return (response.status, try JSONDecoder().decode(Problem.self, from: Data(response.body)).code)
        }
        let origin = ("origin", "https://rooms.example")
        #expect(try refusal(HTTPHeaders([("host", "127.0.0.1:7880"), origin])) == (.forbidden, "-11004"))
        #expect(try refusal(HTTPHeaders([("host", "rooms.example"), origin])) == (.badRequest, "protocol.malformed"))
    }

    @Test func `the addresses of one IPv6 network count as one, and loopback as none`() {
        #expect(ClientAddress("2001:db8::1") == ClientAddress("2001:db8:0:0:ffff::2"))
        #expect(ClientAddress("2001:db8::1") != ClientAddress("2001:db8:0:1::1"))
        #expect(ClientAddress("::ffff:192.0.2.1") == ClientAddress("192.0.2.1"))
        #expect(ClientAddress("192.0.2.1") != ClientAddress("192.0.2.2"))
        #expect(ClientAddress("fe80::1%eth0") == ClientAddress("fe80::2%eth1"))
        for loopback in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            #expect(ClientAddress(loopback).isLoopback)
        }
        #expect(!ClientAddress(nil).isLoopback)
    }

    @Test func `one address cannot use up the page tokens of an open server`() {
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: Signalling.pageTokenPath + "?room=kitchen")
        head.headers.add(name: "host", value: "rooms.example")
        func request(_ address: String, at now: MonotonicTime) -> HTTPResponseStatus {
            routes.answer(head, body: [], from: ClientAddress(address), now: now).status
        }
        var issued = 0
        for second in 0..<600 {
            for _ in 0..<20 where request("192.0.2.1", at: start + .seconds(Int64(second))) == .ok { issued += 1 }
        }
        #expect(issued < 1500)
        #expect(request("192.0.2.1", at: start + .seconds(599)) == .tooManyRequests)
        #expect(request("192.0.2.2", at: start + .seconds(599)) == .ok)
    }
}

@Suite("S14 connections of one address") struct ConnectionQuotaTests {
    @Test func `one address cannot take all connections, and gets others for those that it closes`() {
        let quota = ConnectionQuota()
        let (greedy, other, local) = (
            ClientAddress("192.0.2.1"), ClientAddress("192.0.2.2"), ClientAddress("127.0.0.1")
        )
        var admitted = 0
        while admitted < 5000, quota.admit(greedy) { admitted += 1 }
        #expect(admitted == ConnectionQuota.maximumPerAddress)
        #expect(quota.admit(other))
        quota.release(greedy)
        #expect(quota.admit(greedy))
        #expect(!quota.admit(greedy))
        var ownConnections = 0
        while ownConnections < 5000, quota.admit(local) { ownConnections += 1 }
        #expect(ownConnections == ConnectionQuota.maximum - admitted - 1)
        #expect(!quota.admit(other))
    }
}

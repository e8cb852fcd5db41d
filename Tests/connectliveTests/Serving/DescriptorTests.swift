import Foundation
import Glibc
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@Suite struct DescriptorTests {
    @Test func `a server raises its limit on open files as far as the system lets it`() throws {
        let folder = TemporaryFolder()
        let serve = try RunningProgram(
            "/bin/bash",
            ["-c", "ulimit -S -n 64; exec \"$0\" serve --listen 127.0.0.1:0", try CommandLineTool.path], folder: folder)
        _ = try serve.waitForText("Serving rooms at ws://")
        let limits = try String(contentsOfFile: "/proc/\(serve.process.processIdentifier)/limits", encoding: .utf8)
        let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
        let values = line.split(separator: " ").compactMap { Int($0) }
        try #require(values.count == 2)
        #expect(values[0] == min(values[1], 65536))
        #expect(values[0] > 64)
    }

    @Test func `a server without descriptors refuses with a code, and continues when it has some`() throws {
        let folder = TemporaryFolder()
        let serve = try RunningProgram(
            "/bin/bash",
            ["-c", "ulimit -n 64; exec \"$0\" serve --listen 127.0.0.1:0 --ice full", try CommandLineTool.path],
            folder: folder)
        let line = try serve.waitForText("Serving rooms at ws://")
        let port = try #require(Int(line.split(separator: ":").last ?? ""))
        _ = try serve.waitForText("In a browser")
        let (_, body) = try RawClient(port: port).request(
            "GET /v1/page-token?room=kitchen HTTP/1.1\r\nhost: 127.0.0.1:\(port)\r\n")
        let grant = try JSONDecoder().decode(AccessGrant.self, from: Data(body.utf8))
        // Each connection that joins uses a descriptor, and so does its session.
        var clients: [RawClient] = []
        var refusal: String?
        while refusal == nil, clients.count < 100 {
            let client = try RawClient(port: port)
            guard try client.openWebSocket(port: port) == 101 else {
                refusal = "at the handshake"
                break
            }
            clients.append(client)
            client.sendMessage(.join(Join(token: grant.accessToken, room: "kitchen")), id: 1)
            if case .error(let problem) = try client.message(where: { $0.id == 1 }).message { refusal = problem.code }
        }
        #expect(refusal == "server.full")
        // Connections use the rest. The server also answers those that it has no room for.
        clients += try (0..<40).map { _ in try RawClient(port: port) }
        let last = try RawClient(port: port)
        let (status, answer) = try last.request("GET / HTTP/1.1\r\nhost: 127.0.0.1:\(port)\r\n")
        #expect(status == 503)
        #expect(answer.contains("server.full"))
        clients = []
        var isServed = false
        for _ in 0..<500 where !isServed {
            // The server closes the sessions of participants soon after they leave.
            usleep(10_000)
            let client = try RawClient(port: port)
            isServed = try client.request("GET / HTTP/1.1\r\nhost: 127.0.0.1:\(port)\r\n").status == 200
        }
        #expect(isServed)
    }
}

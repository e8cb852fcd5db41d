import Foundation
import ICELite
import PeerIO
import PeerLoop
import RTP
import Testing
import TestSupport

@testable import connectlive

private let key = ["CONNECTLIVE_TURN_USER": TURNServer.user, "CONNECTLIVE_TURN_PASSWORD": TURNServer.password]
private let pattern = ["publish", "--room", "r", "--test-pattern", "--size", "320x240", "--fps", "15"]

private func path(in file: String) throws -> String? {
    let report = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: file)))
    return (report as? [String: Any])?["path"] as? String
}

@Suite(.serialized) struct RelayTests {
    @Test func `programs use the TURN server that the room server names, with passwords of their own`() throws {
        let turn = try TURNServer(secret: "both know it")
        let server = try TestServer(["--turn", turn.udp], environment: ["CONNECTLIVE_TURN_SECRET": "both know it"])
        let publisher = try CommandLineTool(pattern + ["--ice-policy", "relay"], folder: server.folder)
        let line = try publisher.waitForText("via TURN", seconds: 30)
        #expect(line.contains("via TURN over UDP at 127.0.0.1:\(turn.port)"), "\(line)")
        let viewer = try CommandLineTool.view(
            ["--room", "r", "--ice-policy", "relay", "--report", "r.json"], folder: server.folder)
        #expect(viewer.status == 0, "\(viewer.error)")
        #expect(try path(in: server.folder.file("r.json")) == "via TURN over UDP at 127.0.0.1:\(turn.port)")
        // Without the policy, the direct way is the better one.
        let other = try CommandLineTool.view(["--room", "r", "--report", "o.json"], folder: server.folder)
        #expect(other.status == 0, "\(other.error)")
        #expect(try path(in: server.folder.file("o.json")) == "directly over UDP")
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
    }

    @Test(arguments: ["TCP", "TLS"])
    func `a program reaches the room through a TURN server of its own over TCP and TLS`(transport: String) throws {
        let turn = try TURNServer()
        let server = try TestServer()
        let viewer = try CommandLineTool(pattern, folder: server.folder)
        _ = try viewer.waitForText("Connected")
        let url = transport == "TCP" ? turn.tcp : turn.tls
        let result = try CommandLineTool.view(
            [
                "--room", "r", "--ice-policy", "relay", "--report", "r.json", "--turn", url, "--turn-ca",
                turn.certificate,
            ],
            folder: server.folder, environment: key)
        #expect(result.status == 0, "\(result.error)")
        let place = transport == "TCP" ? "127.0.0.1:\(turn.port)" : "localhost:\(turn.tlsPort)"
        #expect(try path(in: server.folder.file("r.json")) == "via TURN over \(transport) at \(place)")
    }

    @Test func `the authority of --turn-ca counts for a TURN server that the room server names`() throws {
        let turn = try TURNServer(secret: "both know it")
        let server = try TestServer(["--turn", turn.tls], environment: ["CONNECTLIVE_TURN_SECRET": "both know it"])
        let publisher = try CommandLineTool(
            pattern + ["--ice-policy", "relay", "--turn-ca", turn.certificate], folder: server.folder)
        let line = try publisher.waitForText("via TURN", seconds: 30)
        #expect(line.contains("via TURN over TLS at localhost:\(turn.tlsPort)"), "\(line)")
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
    }

    @Test func `a wrong password is one sentence with its code`() throws {
        let turn = try TURNServer()
        let server = try TestServer()
        let result = try CommandLineTool.run(
            pattern + ["--ice-policy", "relay", "--turn", turn.udp], folder: server.folder,
            environment: key.merging(["CONNECTLIVE_TURN_PASSWORD": "wrong"]) { $1 })
        #expect(result.status == 1)
        let said = result.error.split(separator: "\n").filter { $0.hasPrefix("connectlive: ") }
        #expect(said.count == 1 && said.first?.hasSuffix("[turn.unauthorized]") == true, "\(result.error)")
        #expect(said.first?.contains("127.0.0.1:\(turn.port)") == true)
        #expect(!result.error.contains("wrong"))
    }

    @Test func `a TURN server that ends during a call ends it with a sentence that names the server`() throws {
        let turn = try TURNServer()
        let server = try TestServer()
        let publisher = try CommandLineTool(
            pattern + ["--ice-policy", "relay", "--turn", turn.tcp, "--reconnect-seconds", "0"], folder: server.folder,
            environment: key)
        _ = try publisher.waitForText("via TURN", seconds: 30)
        turn.end()
        let result = try publisher.finish(seconds: 45)
        #expect(result.status == 1)
        #expect(result.error.contains("through the TURN server 127.0.0.1:\(turn.port) was lost"), "\(result.error)")
        #expect(result.error.contains("[1413]"), "\(result.error)")
    }

    @Test func `a TURN server that ends during a call is named at once, and media takes another one`() throws {
        let (first, second) = (try TURNServer(), try TURNServer())
        let server = try TestServer()
        let publisher = try CommandLineTool(
            pattern + ["--ice-policy", "relay", "--turn", first.udp, "--turn", second.tcp, "--report", "p.json"],
            folder: server.folder, environment: key)
        _ = try publisher.waitForText("via TURN over UDP at 127.0.0.1:\(first.port)", seconds: 30)
        first.end()
        let lost = try publisher.waitForText("although the server answers", seconds: 20)
        #expect(lost.contains("via TURN over UDP at 127.0.0.1:\(first.port)"), "\(lost)")
        #expect(lost.contains("TURN servers 127.0.0.1:\(first.port) and 127.0.0.1:\(second.port)"), "\(lost)")
        let back = try publisher.waitForText("Media flows again", seconds: 30)
        #expect(back.contains("via TURN over TCP at 127.0.0.1:\(second.port)"), "\(back)")
        publisher.interrupt()
        let result = try publisher.finish(seconds: 20)
        #expect(result.status == 0)
        #expect(!result.error.contains("another participant"), "\(result.error)")
        #expect(try path(in: server.folder.file("p.json")) == "via TURN over TCP at 127.0.0.1:\(second.port)")
    }

    @Test(arguments: ["UDP", "TCP"])
    func `a call whose only TURN server ends gives up after the time of --reconnect-seconds`(transport: String) throws {
        let turn = try TURNServer()
        let server = try TestServer()
        let url = transport == "UDP" ? turn.udp : turn.tcp
        let publisher = try CommandLineTool(
            pattern + ["--ice-policy", "relay", "--turn", url, "--reconnect-seconds", "6"], folder: server.folder,
            environment: key)
        _ = try publisher.waitForText("via TURN", seconds: 30)
        turn.end()
        let result = try publisher.finish(seconds: 30)
        #expect(result.status == 1)
        let way = "via TURN over \(transport) at 127.0.0.1:\(turn.port)"
        #expect(result.error.contains("No media has reached the server"), "\(result.error)")
        #expect(result.error.contains("\(way) for 6 s"), "\(result.error)")
        #expect(result.error.contains("Check that the TURN server runs"), "\(result.error)")
        #expect(result.error.contains("[1413]"), "\(result.error)")
    }

    @Test(arguments: [
        (["--turn", "http://a"], [:], "turn:HOST:PORT"),
        (
            ["--turn", "turn:a"], [:],
            "turn:a is named without a user. Set --turn-user or CONNECTLIVE_TURN_USER, and CONNECTLIVE_TURN_PASSWORD."
        ),
        (["--turn", "turn:a", "--turn-user", "ada"], [:], "turn:a is named without a password. Set --turn-user or"),
        ([], ["CONNECTLIVE_TURN": "stun:a, turn:b"], "The TURN server turn:b is named without a user."),
        ([], ["CONNECTLIVE_ICE_POLICY": "none"], "all or relay"),
    ])
    func `servers that can never be used are refused before anything starts`(
        flags: [String], environment: [String: String], sentence: String
    ) throws {
        let folder = TemporaryFolder()
        let result = try CommandLineTool.run(pattern + flags, folder: folder, environment: environment)
        #expect(result.status != 0)
        #expect(result.error.contains(sentence), "\(result.error)")
    }

    @Test func `a policy of the environment holds for servers of an option too`() throws {
        let server = try TestServer()
        let result = try CommandLineTool.run(
            ["view", "--room", "r", "--seconds", "1", "--turn", "stun:127.0.0.1:3478"], folder: server.folder,
            environment: ["CONNECTLIVE_ICE_POLICY": "relay"])
        #expect(result.status == 1)
        #expect(result.error.contains("[turn.missing]"), "\(result.error)")
    }

    @Test func `serve refuses a TURN server without a secret`() throws {
        let folder = TemporaryFolder()
        let result = try CommandLineTool.run(["serve", "--listen", "127.0.0.1:0", "--turn", "turn:a"], folder: folder)
        #expect(result.status != 0)
        #expect(result.error.contains("CONNECTLIVE_TURN_SECRET"), "\(result.error)")
    }

    @Test(arguments: [
        (["--listen", "127.0.0.1:7880", "--tcp-port", "7880"], "the port of signalling"),
        (["--ice", "full", "--tcp-port", "7881"], "--ice lite"),
        (["--tcp-port", "7881", "--threads", "2", "--udp-port", "7880-7881"], "one port in --udp-port"),
    ])
    func `serve refuses a TCP port for media that it cannot use`(flags: [String], sentence: String) throws {
        let result = try CommandLineTool.run(["serve"] + flags, folder: TemporaryFolder())
        #expect(result.status != 0)
        #expect(result.error.contains(sentence), "\(result.error)")
    }

    @Test func `the doctor tries TURN servers over UDP, TCP and TLS`() async throws {
        let turn = try TURNServer()
        func findings(_ url: String, password: String = TURNServer.password) async throws -> [Finding] {
            var server = try ICEServer(url: url, username: TURNServer.user, credential: password)
            server.authorities = turn.certificate
            return await RelayUnderTest(server: server).check.run()
        }
        for (url, transport) in [(turn.udp, "UDP"), (turn.tcp, "TCP"), (turn.tls, "TLS")] {
            let found = try await findings(url)
            #expect(found.map(\.level) == [.ok], "\(found)")
            #expect(found.first?.text.contains("over \(transport) relays at 127.0.0.1:") == true, "\(found)")
        }
        let refused = try await findings(turn.tcp, password: "wrong")
        #expect(refused.map(\.level) == [.failure])
        #expect(refused.first?.fix?.contains("CONNECTLIVE_TURN_PASSWORD") == true, "\(refused)")
        let udp = turn.udp
        turn.end()
        let gone = try await findings(udp)
        #expect(gone.first?.text.contains("refuses UDP") == true, "\(gone)")
        #expect(gone.first?.fix?.contains("open UDP port \(turn.port)") == true, "\(gone)")
    }

    @Test func `the doctor tries the TURN servers that the room server names, although the direct way works`() throws {
        let turn = try TURNServer(secret: "both know it")
        func lines(secret: String) throws -> [Substring] {
            let server = try TestServer(
                ["--turn", turn.udp, "--turn", turn.tcp], environment: ["CONNECTLIVE_TURN_SECRET": secret])
            let result = try CommandLineTool.run(["doctor", "--quick"], folder: server.folder, seconds: 120)
            return result.output.split(separator: "\n")
        }
        let good = try lines(secret: "both know it")
        #expect(good.contains { $0.contains("media connected directly over UDP") }, "\(good)")
        for transport in ["UDP", "TCP"] {
            let start = "ok       TURN: 127.0.0.1:\(turn.port) over \(transport) relays at 127.0.0.1:"
            #expect(good.contains { $0.hasPrefix(start) }, "\(good)")
        }
        let wrong = try lines(secret: "another one")
        #expect(wrong.contains { $0.contains("media connected directly over UDP") }, "\(wrong)")
        #expect(wrong.count { $0.hasPrefix("failure  TURN: ") } == 2, "\(wrong)")
        #expect(wrong.count { $0.contains("fix: Start 'connectlive serve' with the secret") } == 2, "\(wrong)")
    }

    @Test func `the doctor's fix for a wrong password is the right one, also if the call itself needs the TURN server`()
        throws
    {
        let turn = try TURNServer()
        let server = try TestServer()
        let result = try CommandLineTool.run(
            ["doctor", "--quick", "--ice-policy", "relay", "--turn", turn.udp], folder: server.folder,
            environment: key.merging(["CONNECTLIVE_TURN_PASSWORD": "wrong"]) { $1 }, seconds: 120)
        #expect(result.status == 1)
        let lines = result.output.split(separator: "\n")
        #expect(lines.contains { $0.hasPrefix("failure  server: ") && $0.hasSuffix("[turn.unauthorized]") }, "\(lines)")
        #expect(lines.count { $0.contains("fix: Correct CONNECTLIVE_TURN_USER and") } == 2, "\(lines)")
    }

    @Test func `the doctor tries the TURN servers that the room server names, also if the call fails`() throws {
        let turn = try TURNServer(secret: "both know it")
        let server = try TestServer(
            ["--turn", turn.udp], environment: ["CONNECTLIVE_TURN_SECRET": "another one"])
        let result = try CommandLineTool.run(
            ["doctor", "--quick", "--ice-policy", "relay"], folder: server.folder, seconds: 120)
        #expect(result.status == 1)
        let lines = result.output.split(separator: "\n")
        for check in ["server", "TURN"] {
            #expect(lines.contains { $0.hasPrefix("failure  \(check): The TURN server ") }, "\(lines)")
        }
    }

    @Test func `a TURN server of the room server is a failure if it rejects the user, and a warning if it is silent`()
        async throws
    {
        var server = try ICEServer(url: "turn:203.0.113.7", username: "u", credential: "p")
        server.origin = .named(byEndAt: "203.0.113.8")
        for (code, level, fix) in [
            ("turn.unauthorized", Finding.Level.failure, "CONNECTLIVE_TURN_SECRET"),
            ("turn.unreachable", Finding.Level.warning, "open UDP port 3478"),
        ] {
            let test = RelayUnderTest(server: server) { _ in throw TransportError(code: code, message: "It fails.") }
            let found = await test.check.run()
            #expect(found.map(\.level) == [level])
            #expect(found.first?.fix?.contains(fix) == true, "\(found)")
        }
    }

    @Test func `the doctor does not ask to start a TURN server whose name or place is the problem`() async throws {
        for (origin, problem, fix) in [
            (ICEServer.Origin.configured, RelayPlaceProblem.unknownName, "Correct the name trun.example in --turn,"),
            (.named(byEndAt: nil), .unknownName, "Correct the name trun.example in --turn of 'connectlive serve'"),
            (.named(byEndAt: nil), .forbidden, "Pass --turn URL here"), (.configured, .noRoute, "Check the network"),
            (.configured, .noTLS, "Name the TLS port of the TURN server in --turn,"),
        ] {
            var server = try ICEServer(url: "turn:trun.example", username: "u", credential: "p")
            server.origin = origin
            let error = TransportError(code: "turn.unreachable", message: "It fails.", cause: problem)
            let found = await RelayUnderTest(server: server) { _ in throw error }.check.run()
            #expect(found.first?.fix?.hasPrefix(fix) == true, "\(found)")
        }
    }

    @Test func `a TURN server whose port has no TLS is told from one that is not there`() async throws {
        let folder = TemporaryFolder()
        let program = try RunningProgram(
            "/usr/bin/python3",
            [
                "-c",
                "import socket; s = socket.create_server(('127.0.0.1', 0)); print('port', s.getsockname()[1], flush=True); "
                    + "c, _ = s.accept(); c.sendall(b'SSH-2.0-x\\r\\n' * 10); c.recv(9999); c.close()",
            ], folder: folder)
        let port = try #require(try program.waitForText("port ").split(separator: " ").last)
        let server = try ICEServer(url: "turns:127.0.0.1:\(port)", username: "u", credential: "p")
        let found = await RelayUnderTest(server: server).check.run()
        #expect(found.first?.text.contains("accepts TCP, but the TLS handshake fails") == true, "\(found)")
        #expect(found.first?.fix?.contains("5349") == true, "\(found)")
    }

    @Test func `the doctor warns of a public TURN server whose relays are not public`() async throws {
        let server = try ICEServer(url: "turn:203.0.113.7", username: "u", credential: "p")
        let test = RelayUnderTest(server: server) { _ in
            RelayTest.Outcome(relay: TransportAddress(ipv4: 0x0a00_0005, port: 5000), isHidden: true)
        }
        let found = await test.check.run()
        #expect(found.map(\.level) == [.warning])
        #expect(found.first?.fix?.contains("external-ip") == true, "\(found)")
    }
}

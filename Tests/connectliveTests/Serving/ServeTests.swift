import Foundation
import Glibc
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@Suite struct ServeTests {
    /// The lines of a server that starts and then ends, or that ends by itself.
    private func lines(
        _ arguments: [String], limit: Int? = nil, starts: Bool = true
    ) throws -> (output: String, error: String) {
        let limiting = limit.map { "ulimit -n \($0); " } ?? ""
        let serve = try RunningProgram(
            "/bin/bash", ["-c", limiting + "exec \"$0\" serve \"$@\"", try CommandLineTool.path] + arguments,
            folder: TemporaryFolder())
        if starts {
            _ = try serve.waitForText("In a browser")
            kill(serve.process.processIdentifier, SIGTERM)
        }
        let result = try serve.finish(seconds: 20)
        return (result.output, result.error)
    }

    @Test func `an address of IPv6 is printed for media, and not as a page, if signalling has IPv4 only`() throws {
        let arguments = ["--open", "--public-address", "[2001:DB8::5]", "--public-address", "2001:db8:0::5"]
        let four = try lines(["--listen", "0.0.0.0:0"] + arguments).output
        #expect(four.components(separatedBy: "2001:db8::5").count == 3, "\(four)")
        #expect(
            four.contains("Only media uses 2001:db8::5: signalling at this address needs --listen [::]."), "\(four)")
        #expect(!four.contains("[2001:db8::5]"), "\(four)")
        let six = try lines(["--listen", "[::]:0"] + arguments).output
        #expect(six.contains("ws://[2001:db8::5]:"), "\(six)")
        #expect(six.contains("In a browser on another machine: http://[2001:db8::5]:"), "\(six)")
        #expect(!six.contains("Only media"), "\(six)")
    }

    @Test func `an open server on loopback says that only this machine can join`() throws {
        let sentence = "Only browsers of this machine can join: the server listens on loopback."
        #expect(try lines(["--listen", "127.0.0.1:0", "--open"]).output.contains(sentence))
        #expect(try !lines(["--listen", "127.0.0.1:0"]).output.contains(sentence))
    }

    @Test func `a server that others reach warns of plain signalling and of a short secret`() throws {
        let key = ["--service-id", "id", "--service-secret"]
        let long = String(repeating: "s", count: 16)
        let plain = try lines(["--listen", "0.0.0.0:0"] + key + ["short"]).error
        #expect(plain.contains("warning: Signalling is not encrypted"), "\(plain)")
        #expect(plain.contains("Pass --tls-certificate and --tls-key"), "\(plain)")
        #expect(plain.contains("warning: The service secret has 5 bytes"), "\(plain)")
        #expect(try !lines(["--listen", "127.0.0.1:0"] + key + ["short"]).error.contains("warning: "))
        let folder = TemporaryFolder()
        let made = try MadeCertificate.chain(in: folder.path)
        let files = ["--tls-certificate", made.certificate, "--tls-key", made.key]
        let encrypted = try withExtendedLifetime(folder) {
            try lines(["--listen", "0.0.0.0:0"] + files + key + [long]).error
        }
        #expect(!encrypted.contains("warning: "))
    }

    @Test func `a certificate without its key, and files that are none, end the command with a sentence`() throws {
        let half = try lines(["--tls-key", "a.key"], starts: false).error
        #expect(half.contains("--tls-certificate and --tls-key need each other."), "\(half)")
        let none = try lines(["--tls-certificate", "a.pem", "--tls-key", "a.key"], starts: false).error
        #expect(none.hasPrefix("connectlive: The certificate file a.pem does not exist."), "\(none)")
        #expect(none.hasSuffix("[server.certificate-unreadable]\n"), "\(none)")
        let folder = try lines(["--tls-certificate", "/", "--tls-key", "a.key"], starts: false).error
        #expect(folder.hasPrefix("connectlive: The certificate file / is a folder."), "\(folder)")
    }

    @Test func `this user's commands find a server with TLS, also after its certificate was replaced`() async throws {
        let made = TemporaryFolder()
        let first = try MadeCertificate.chain(in: made.path, name: "first", names: "DNS:first.example,IP:192.0.2.9")
        let second = try MadeCertificate.chain(in: made.path, name: "second", names: "DNS:second.example")
        let (certificate, key) = (made.file("used.pem"), made.file("used.key"))
        func copy(_ one: MadeCertificate) throws {
            for (from, to) in [(one.certificate, certificate), (one.key, key)] {
                try Data(contentsOf: URL(fileURLWithPath: from)).write(to: URL(fileURLWithPath: to))
            }
        }
        try copy(first)
        let server = try TestServer(["--tls-certificate", certificate, "--tls-key", key])
        #expect(server.url.hasPrefix("https://127.0.0.1:"))
        let line = try server.tool.waitForText("The certificate is for")
        #expect(line == "The certificate is for first.example, 192.0.2.9, and expires on 2120-01-01.")
        func rooms(_ arguments: [String] = []) throws -> (status: Int32, output: String, error: String) {
            let result = try CommandLineTool(["rooms"] + arguments, folder: server.folder).finish(seconds: 20)
            return (result.status, result.output, result.error)
        }
        #expect(try rooms().output == "Nobody is in a room.\n")
        #expect(try rooms(["--server", server.url]).status == 0)
        let other = try rooms(["--server", server.url, "--ca", first.authority])
        #expect(other.status == 1 && other.error.contains("is not for 127.0.0.1 but for first.example"), "\(other)")
        try copy(second)
        let written = try String(contentsOfFile: made.file("second-leaf.pem"), encoding: .utf8)
        let file = server.folder.file("connectlive/server.json")
        try await requireEventually(within: 40, "the server file has the other certificate") {
            (try? ServerFile.read(from: file))?.certificate == written
        }
        #expect(try rooms().output == "Nobody is in a room.\n")
    }

    @Test func `rooms end and participants go by other names of the commands too`() throws {
        let server = try TestServer([])
        for arguments in [["destroy", "nobody"], ["kick", "nobody", "p-1"], ["end", "nobody"]] {
            let result = try CommandLineTool(["room"] + arguments, folder: server.folder).finish(seconds: 20)
            #expect(result.status == 1 && result.error.hasSuffix(".unknown]\n"), "\(result)")
        }
        func join() throws -> (publisher: CommandLineTool, id: String) {
            let publisher = try CommandLineTool(
                ["publish", "--room", "kitchen", "--test-pattern"], folder: server.folder)
            let line = try publisher.waitForText("Connected to the room kitchen as p-")
            return (publisher, try #require(line.firstMatch(of: #/p-[^ .]+/#).map { String($0.output) }))
        }
        func run(_ arguments: String...) throws -> String {
            try CommandLineTool(["room"] + arguments, folder: server.folder).finish(seconds: 20).output
        }
        func end(of publisher: CommandLineTool) throws -> String {
            let result = try publisher.finish(seconds: 20)
            #expect(result.status == 1)
            return result.error
        }
        let (ann, ben) = (try join(), try join())
        #expect(try run("kick", "kitchen", ann.id) == "\(ann.id) was removed from the room kitchen.\n")
        #expect(try end(of: ann.publisher).contains("The server's administrator removed this participant"))
        #expect(try run("destroy", "kitchen") == "The room kitchen ended with 1 participant.\n")
        #expect(try end(of: ben.publisher).contains("The server's administrator ended the room."))
    }

    @Test(arguments: [10, 15, 25])
    func `a limit on open files that is too low ends the server with a sentence`(limit: Int) throws {
        let result = try lines(["--listen", "127.0.0.1:0", "--threads", "1"], limit: limit, starts: false)
        #expect(
            result.error
                == "connectlive: A server with 1 thread needs 31 open files, and the limit is \(limit). Raise it: "
                + "ulimit -n 4096 [server.full]\n")
    }

    @Test func `a server starts with the lowest limit on open files, and says how many participants fit`() throws {
        let lowest = try lines(["--listen", "0.0.0.0:0", "--threads", "1"], limit: 31)
        #expect(lowest.output.contains("The limit on open files allows about "), "\(lowest.error)")
        let more = try lines(["--listen", "127.0.0.1:0", "--threads", "1"], limit: 131).output
        let count = more.split(separator: " ").compactMap { Int($0) }.first { (90...120).contains($0) }
        #expect(count != nil && more.contains("For 1000, raise it: ulimit -n 4096"), "\(more)")
        #expect(try !lines(["--listen", "127.0.0.1:0", "--threads", "1"], limit: 1100).output.contains("open files"))
    }

    @Test(
        arguments: [
            (
                ["CONNECTLIVE_SERVICE_ID": "id"], [],
                "CONNECTLIVE_SERVICE_ID is set, but a service key is an id and a secret. Set --service-secret or "
                    + "CONNECTLIVE_SERVICE_SECRET too, or neither. [1103]"
            ),
            (
                [:], ["--service-secret", "s"],
                "--service-secret is set, but a service key is an id and a secret. Set --service-id or "
                    + "CONNECTLIVE_SERVICE_ID too, or neither. [1103]"
            ),
            (
                ["CONNECTLIVE_SERVICE_ID": "id", "CONNECTLIVE_SERVICE_SECRET": ""], [],
                "CONNECTLIVE_SERVICE_SECRET is empty. Set it, or leave out the id and the secret. [1103]"
            ),
        ] as [([String: String], [String], String)])
    func `half a service key is refused with the name of its place`(
        environment: [String: String], arguments: [String], sentence: String
    ) throws {
        let result = try CommandLineTool.run(
            ["serve", "--listen", "127.0.0.1:0"] + arguments, folder: TemporaryFolder(), environment: environment)
        #expect(result.status == 1)
        #expect(result.error == "connectlive: \(sentence)\n")
    }

    @Test func `a publisher prints that it has joined, and that its server was stopped`() throws {
        let server = try TestServer()
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--test-pattern", "--reconnect-seconds", "0"], folder: server.folder)
        _ = try publisher.waitForText("Connected to the room kitchen as p-")
        kill(server.tool.process.processIdentifier, SIGTERM)
        let result = try publisher.finish(seconds: 20)
        #expect(result.status == 1)
        #expect(
            result.error.contains(
                "The server stopped. Start it and join the room again, or wait for it with --forever. [1302]"),
            "\(result.error)"
        )
    }

    @Test func `a viewer prints that it has joined, although nobody publishes`() throws {
        let server = try TestServer()
        let viewer = try CommandLineTool(["view", "--room", "kitchen", "--no-window"], folder: server.folder)
        _ = try viewer.waitForText("Connected to the room kitchen as p-")
        viewer.interrupt()
        #expect(try viewer.finish(seconds: 20).status == 0)
    }

    @Test func `other commands find the demo's server`() throws {
        let folder = TemporaryFolder()
        let demo = try CommandLineTool(
            ["demo", "--listen", "127.0.0.1:0", "--no-window", "--room", "den"], folder: folder)
        _ = try demo.waitForText("/connectlive publish --room den --test-pattern")
        let publisher = try CommandLineTool(["publish", "--room", "den", "--test-pattern"], folder: folder)
        _ = try publisher.waitForText("Connected to the room den as p-")
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
        demo.interrupt()
        _ = try demo.finish(seconds: 20)
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
        #expect(!files.contains { $0.hasSuffix("server.json") }, "\(files)")
    }
}

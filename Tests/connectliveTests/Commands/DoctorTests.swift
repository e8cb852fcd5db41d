import Cameras
import Dispatch
import Foundation
import ICELite
import MediaGraph
import MediaNodes
import PeerLoop
import RoomTLS
import TestSupport
import Testing

@testable import connectlive

/// The checks of `connectlive doctor` on made-up machines.
@Suite struct DoctorTests {
    /// A machine on which everything works, and which has two encoders.
    private static func healthy() -> Machine {
        var machine = Machine()
        machine.elements = InstalledElements()
        machine.gstreamer = { "1.22.0" }
        machine.cameras = { [Machine.Camera(name: "serial:A1", model: "Webcam")] }
        machine.libraryCameras = { [] }
        machine.sound = {
            let device = AudioDevice(identifier: "alsa.1", name: "Headset", isDefault: true)
            return (SoundDevices(.pulse, microphones: [device], speakers: [device]), nil)
        }
        machine.encoders = [
            KnownEncoder(codec: "vp8", factory: "vp8enc", isHardware: false),
            KnownEncoder(codec: "h264", factory: "x264enc", isHardware: false),
        ]
        machine.encode = { _, _ in 84.7 }
        machine.variable = { $0 == "DISPLAY" ? ":0" : nil }
        machine.file = { _ in "4194304\n" }
        machine.access = { _ in (true, true) }
        machine.user = { "ada" }
        machine.ports = Ports(open: { _, _, _ in nil }, user: { _, _ in nil }, loopback: {})
        machine.openFiles = { 65536 }
        machine.wantedBuffer = 4 << 20
        machine.clockError = { .milliseconds(3) }
        machine.addresses = { ["192.0.2.5", "2001:db8::5"] }
        return machine
    }

    /// Waits for every check, so that a slow machine changes no test.
    private static let runner = CheckRunner { _ in try? await Task.sleep(for: .seconds(3600)) }

    private static func checks(_ machine: Machine) -> [Check] {
        machine.codecChecks + machine.deviceChecks + machine.systemChecks
    }

    /// The lines of a check that are not `ok`, after a change to the healthy machine.
    private func problems(
        of name: String, after change: (inout Machine) -> Void
    ) async -> [Finding] {
        var machine = Self.healthy()
        change(&machine)
        let reports = Collected<Finding>()
        await Self.runner.run(Self.checks(machine).filter { $0.name == name }) { _, findings in
            for finding in findings where finding.level != .ok { reports.append(finding) }
        }
        return reports.all
    }

    @Test func `a healthy machine can call, and each check has a line`() async {
        var report = DoctorReport()
        var lines: [String] = []
        await Self.runner.run(Self.checks(Self.healthy())) { check, findings in
            lines += report.add(findings, of: check.name)
        }
        #expect(report.worst == .ok)
        #expect(report.conclusion == "This machine can call.")
        #expect(lines.contains("ok       encoder: h264 x264enc: 84 frames/s at 1280x720"), "\(lines)")
        #expect(lines.contains("ok       cameras: serial:A1 (Webcam) can be opened"))
        let names = Set(report.findings.map(\.check))
        // A machine without libcamera has no line about it.
        #expect(names == Set(Self.checks(Self.healthy()).map(\.name)).subtracting(["libcamera"]))
    }

    @Test func `a machine without a camera is told how to call without one`() async {
        let found = await problems(of: "cameras") { $0.cameras = { [] } }
        #expect(
            found == [
                .warning("No camera was found.", fix: "Plug one in, or publish with --file FILE or --test-pattern.")
            ])
    }

    @Test func `a machine with a camera of libcamera alone has a camera`() async {
        var machine = Self.healthy()
        machine.cameras = { [] }
        machine.libraryCameras = { ["libcamera:imx219"] }
        let reports = Collected<Finding>()
        await Self.runner.run(machine.deviceChecks) { check, findings in
            if ["cameras", "libcamera"].contains(check.name) { findings.forEach(reports.append) }
        }
        #expect(reports.all == [.ok("libcamera:imx219 is present")])
    }

    @Test func `a camera that this user may not open is a failure with the group to join`() async {
        let found = await problems(of: "cameras") {
            let error = MediaError(code: MediaError.Code.cameraDenied, message: "")
            $0.cameras = { [Machine.Camera(name: "/dev/video0", model: "Webcam", error: error)] }
        }
        #expect(found.map(\.level) == [.failure])
        #expect(found.first?.fix == "sudo usermod --append --groups video ada, then log in again")
    }

    @Test func `a camera that another program uses is a warning`() async {
        let found = await problems(of: "cameras") {
            let error = MediaError(code: MediaError.Code.cameraBusy, message: "")
            $0.cameras = { [Machine.Camera(name: "/dev/video0", model: "Webcam", error: error)] }
        }
        #expect(found.map(\.text) == ["/dev/video0 (Webcam) is in use by another program"])
        #expect(found.map(\.level) == [.warning])
    }

    @Test func `missing plugins are named with their Debian packages`() async {
        let found = await problems(of: "plugins") {
            $0.elements = InstalledElements(missing: ["opusenc", "opusdec", "x264enc"])
        }
        #expect(
            found == [
                .failure(
                    "Every call needs opusenc, opusdec, not installed.",
                    fix: "sudo apt install gstreamer1.0-plugins-base"),
                .warning("For H.264: x264enc not installed.", fix: "sudo apt install gstreamer1.0-plugins-ugly"),
            ])
    }

    @Test func `an encoder below 30 frames a second is a warning`() async {
        let found = await problems(of: "encoder") { $0.encode = { encoder, _ in encoder.codec == "vp8" ? 29.9 : 30 } }
        #expect(found.map(\.text) == ["vp8 vp8enc: 29 frames/s at 1280x720, too slow for 30"])
        #expect(found.map(\.level) == [.warning])
    }

    @Test func `a decoder that needs longer than a frame lasts is a warning`() async {
        let found = await problems(of: "decoder") { $0.elements = InstalledElements(secondsPerFrame: 0.040) }
        #expect(found.count == 3 && found.allSatisfy { $0.level == .warning }, "\(found)")
        #expect(found.first?.text.hasPrefix("vp8 vp8dec: 40 ms for a frame of 1280x720, too slow") == true)
    }

    @Test func `a hardware encoder without its driver is a warning`() async {
        let found = await problems(of: "hardware encoders") {
            $0.encoders.append(KnownEncoder(codec: "h264", factory: "vah264enc", isHardware: true))
            $0.elements = InstalledElements(unusable: ["vah264enc"])
        }
        #expect(found.map(\.text) == ["vah264enc: installed, but cannot be opened."])
    }

    @Test func `small buffers of the kernel are a warning with the command of the server`() async {
        let found = await problems(of: "socket buffers") {
            $0.file = { $0.hasSuffix("rmem_max") ? "212992" : "4194304" }
        }
        #expect(found.map(\.level) == [.warning])
        #expect(found.first?.text.hasPrefix("net.core.rmem_max 208 KiB, net.core.wmem_max 4096 KiB") == true)
        #expect(found.first?.fix == "sudo sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304")
    }

    @Test func `a used port is named with its program, and a server of this program is no problem`() async {
        func ports(of program: String) -> Ports {
            Ports(open: { $0 == .tcp && $2 == 7880 ? .inUse : nil }, user: { _, _ in program }, loopback: {})
        }
        let found = await problems(of: "ports") { $0.ports = ports(of: "python3 (process 5)") }
        #expect(
            found == [
                .warning(
                    "TCP port 7880, the server's default, is in use by python3 (process 5).",
                    fix: "connectlive serve --listen 127.0.0.1:7881")
            ])
        #expect(await problems(of: "ports") { $0.ports = ports(of: "connectlive (process 5)") }.isEmpty)
    }

    @Test func `a machine that cannot open UDP sockets cannot call`() async {
        let found = await problems(of: "ports") {
            $0.ports.open = { transport, _, _ in transport == .udp ? .other("operation not permitted") : nil }
        }
        #expect(found.map(\.level) == [.failure])
    }

    @Test func `a clock that nothing synchronises, or that may be wrong, is a warning`() async {
        #expect(await problems(of: "clock") { $0.clockError = { nil } }.map(\.level) == [.warning])
        let found = await problems(of: "clock") { $0.clockError = { .seconds(16) } }
        #expect(found.map(\.text) == ["The clock may be wrong by 16000 ms."])
    }

    @Test func `too few open files are a warning`() async {
        let found = await problems(of: "open files") { $0.openFiles = { 1024 } }
        #expect(found.map(\.fix) == ["ulimit -n 4096"])
    }

    @Test func `a display that opens no window is a failure, and a missing one a warning`() async {
        #expect(
            await problems(of: "display") { $0.elements = InstalledElements(window: nil) }.map(\.level) == [.failure])
        #expect(await problems(of: "display") { $0.variable = { _ in nil } }.map(\.level) == [.warning])
    }

    @Test func `a sound server that hangs is a failure with the command that restarts it`() async {
        let found = await problems(of: "sound") { $0.sound = { (nil, "The sound server did not respond within 3 s.") } }
        #expect(
            found == [.failure("The sound server did not respond within 3 s.", fix: Machine.soundServerFix)])
    }

    // MARK: The runner

    @Test func `a check that hangs is a failure after its limit, and delays no other check`() async {
        let (others, answered) = AsyncStream.makeStream(of: Void.self)
        let driver = DispatchSemaphore(value: 0)
        defer { driver.signal() }
        let checks = [
            Check.blocking("hung", fixIfSilent: "Plug it in again.") {
                driver.wait()
                return [.ok("late")]
            },
            Check("quick", limit: .seconds(7), fixIfSilent: "") {
                answered.finish()
                return [.ok("there")]
            },
        ]
        // The limit of the first check ends when the other check has run, and that of the other one never does.
        let runner = CheckRunner { limit in
            if limit == Check.usualLimit {
                for await _ in others {}
            } else {
                try? await Task.sleep(for: .seconds(3600))
            }
        }
        var report = DoctorReport()
        var lines: [String] = []
        await runner.run(checks) { check, findings in lines += report.add(findings, of: check.name) }
        #expect(
            lines == [
                "failure  hung: did not answer within 3 s", "         fix: Plug it in again.", "ok       quick: there",
            ])
        #expect(report.worst == .failure)
    }

    @Test func `a server that is silent is named`() async throws {
        var stun = try #require(STUNServer("stun.example"))
        stun.ask = { _, _ in
            try await Task.sleep(for: .seconds(3600))
            throw CancellationError()
        }
        let server = ServerUnderTest(
            name: "ws://a:1",
            health: {
                try await Task.sleep(for: .seconds(3600))
                throw CancellationError()
            }, signIn: {}, join: { "" })
        let turn = RelayUnderTest(server: try ICEServer(url: "turns:a:443", username: "u", credential: "p"))
        #expect(turn.check.asked == "a:443 over TLS")
        let reports = Collected<String>()
        await CheckRunner { _ in }.run([stun.check(Self.healthy()), server.check]) { _, findings in
            findings.forEach { reports.append($0.text) }
        }
        #expect(reports.all == ["stun.example:3478 did not answer within 5 s", "ws://a:1 did not answer within 45 s"])
    }

    @Test func `checks that measure speed run one at a time, after the others`() async {
        let order = Collected<String>()
        func check(_ name: String, _ stage: Check.Stage) -> Check {
            Check(name, stage, fixIfSilent: "") {
                order.append("+" + name)
                await Task.yield()
                order.append("-" + name)
                return []
            }
        }
        let checks = [check("b", .alone), check("c", .alone), check("a", .together), check("first", .first)]
        await Self.runner.run(checks) { _, _ in }
        #expect(order.all == ["+first", "-first", "+a", "-a", "+b", "-b", "+c", "-c"])
    }

    // MARK: Servers

    private struct Refusal: Error, CustomStringConvertible { let description: String }

    private func findings(_ server: ServerUnderTest) async -> [Finding] { await server.check.run() }

    @Test func `a server is asked in steps, up to the one that fails`() async {
        var server = ServerUnderTest(name: "ws://a:1", health: { 200 }, signIn: {}, join: { "media connected" })
        #expect(
            await findings(server) == [
                .ok("ws://a:1 is reachable"), .ok("ws://a:1 accepts the service id and secret"),
                .ok("ws://a:1: media connected"),
            ])
        server.signIn = { throw Refusal(description: "The secret is not the server's. [-11003]") }
        let refused = await findings(server)
        #expect(refused.map(\.level) == [.ok, .failure])
        #expect(refused.last?.fix == "Pass --service-id and --service-secret of that server.")
        server.health = { 404 }
        #expect(await findings(server).map(\.level) == [.failure])
    }

    @Test(arguments: [
        ("turn.unauthorized", true, "CONNECTLIVE_TURN_PASSWORD"),
        ("turn.unauthorized", false, "CONNECTLIVE_TURN_SECRET"),
        ("turn.certificate", true, "--turn-ca"), ("turn.certificate", false, "--turn-ca"),
        ("turn.refused", false, "total-quota"), ("turn.unreachable", true, "Start the TURN server"),
        ("turn.missing", false, "--turn URL"),
    ])
    func `a call that fails at a TURN server gets the fix for the error's code`(
        code: String, hasOwnServers: Bool, fix: String
    ) async {
        var server = ServerUnderTest(
            name: "ws://a:1", health: { 200 }, signIn: {},
            join: { throw Refusal(description: "The TURN server 192.0.2.1:3478 cannot be used. [\(code)]") })
        server.hasOwnServers = hasOwnServers
        let found = await findings(server)
        #expect(found.last?.fix?.contains(fix) == true, "\(found)")
    }

    @Test(arguments: [
        ("The server has 500 participants, which is the limit. Try later. [server.full]", "Follow the message"),
        ("Client and server have no common version. Update one. [protocol.version]", "Follow the message"),
        ("No address responded. [1411]", "UDP port"),
        ("It fails without a code.", "Follow the message"),
    ])
    func `a room that cannot be joined gets the fix of the error's code`(sentence: String, fix: String) async {
        let server = ServerUnderTest(
            name: "ws://a:1", health: { 200 }, signIn: {}, join: { throw Refusal(description: sentence) })
        let found = await findings(server)
        #expect(found.last?.fix?.contains(fix) == true, "\(found)")
    }

    @Test(arguments: [
        "Too many wrong secrets came from this address. Try again in 9 s. [server.too-many-requests]",
        "The server ws://a:1 is unreachable: the timeout expired. Check the address. [1305]",
    ])
    func `a sign-in that fails for another reason than the secret gets another fix`(sentence: String) async {
        let server = ServerUnderTest(
            name: "ws://a:1", health: { 200 }, signIn: { throw Refusal(description: sentence) }, join: { "" })
        #expect(await findings(server).last?.fix?.hasPrefix("Follow the message") == true)
    }

    @Test func `a call that finds no way although TURN servers are known gets a fix for those`() async throws {
        let server = ServerUnderTest(
            name: "ws://a:1", health: { 200 }, signIn: {}, join: { throw Refusal(description: "It failed. [1411]") })
        #expect(await findings(server).last?.fix?.contains("--turn URL") == true)
        server.relays.set([try ICEServer(url: "turn:203.0.113.7", username: "u", credential: "p")])
        #expect(await findings(server).last?.fix?.contains("external-ip") == true)
    }

    @Test func `a server's certificate is reported, with a warning two weeks before its end`() async throws {
        let folder = TemporaryFolder()
        let made = try MadeCertificate.chain(in: folder.path, days: (from: "20200101000000Z", to: "20300101000000Z"))
        let certificate = ServerCertificate(try #require(try PEMFile.certificates(made.certificate).first))
        let end = certificate.expires
        func level(_ now: Double) -> Finding.Level { ServerUnderTest.finding(of: certificate, now: now).level }
        #expect(level(end - 15 * 86400) == .ok && level(end - 13 * 86400) == .warning && level(end + 1) == .failure)
        #expect(
            ServerUnderTest.finding(of: certificate, now: end - 86400 * 1.5)
                == .warning(
                    "its certificate expires on 2030-01-01, in 1 day",
                    fix: "Renew it. The server reads the new file by itself."))
        var server = ServerUnderTest(name: "https://a", health: { 200 }, signIn: {}, join: { "media connected" })
        server.certificate = { certificate }
        #expect(await findings(server).count == 4)
        // The code chooses the fix.
        server.signIn = { throw Refusal(description: "The secret is not the server's. [-11003]") }
        #expect(await findings(server).last?.fix == "Pass --service-id and --service-secret of that server.")
        server.health = { throw Refusal(description: "The certificate has expired. [server.certificate]") }
        #expect(await findings(server).last?.fix?.contains("--ca") == true)
    }

    @Test func `the public address of a STUN server shows whether this machine is behind address translation`()
        async throws
    {
        var server = try #require(STUNServer("stun.example"))
        #expect(server.port == 3478)
        server.ask = { _, _ in TransportAddress(ipv4: 0xc000_0205, port: 4000) }
        #expect(
            await server.check(Self.healthy()).run()
                == [.ok("192.0.2.5 by stun.example:3478, without address translation")])
        server.ask = { _, _ in TransportAddress(ipv4: 0xc633_6401, port: 4000) }
        let text = await server.check(Self.healthy()).run().first?.text ?? ""
        #expect(text.contains("--public-address 198.51.100.1"), "\(text)")
    }

    @Test(arguments: [
        ("a", "a", 3478), ("a:7", "a", 7), ("[::1]:7", "::1", 7), ("192.0.2.1:99999", "", 0), ("", "", 0),
        ("a/b", "", 0),
    ])
    func `a STUN server is a host and a port`(text: String, host: String, port: Int) {
        let server = STUNServer(text)
        #expect(server?.host ?? "" == host && server?.port ?? 0 == port)
    }

    /// A STUN server (RFC 8489) that answers each request with the address of its sender, and before that with another address
    /// for another request.
    private static let stunServer = """
        import socket, struct
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", 0))
        print("port", s.getsockname()[1], flush=True)
        while True:
            request, sender = s.recvfrom(2048)
            for transaction, host in [(bytes(12), "192.0.2.9"), (request[8:20], sender[0])]:
                address = struct.unpack("!I", socket.inet_aton(host))[0] ^ 0x2112A442
                value = struct.pack("!HHBBHI", 0x20, 8, 0, 1, sender[1] ^ 0x2112, address)
                s.sendto(struct.pack("!HHI", 0x0101, len(value), 0x2112A442) + transaction + value, sender)
        """

    @Test func `a STUN server is asked over UDP`() async throws {
        let folder = TemporaryFolder()
        let program = try RunningProgram("/usr/bin/python3", ["-c", Self.stunServer], folder: folder)
        let line = try program.waitForText("port ")
        let port = try #require(line.split(separator: " ").last)
        let server = try #require(STUNServer("127.0.0.1:\(port)"))
        let address = try await server.ask(server.host, server.port)
        #expect(address.host == "127.0.0.1" && address.port != 0)
    }

    @Test func `a STUN server whose port is closed refuses, at once`() async throws {
        let servers = [
            try #require(STUNServer("127.0.0.1:1")), try #require(STUNServer("stun:127.0.0.1:1")),
            STUNServer(try ICEServer(url: "stun:127.0.0.1:1")),
        ]
        for server in servers {
            let found = await server.check(Self.healthy()).run()
            #expect(found.first?.text.hasPrefix("127.0.0.1:1 refuses UDP") == true, "\(found)")
        }
    }

    // MARK: The machine

    @Test func `a program is found by its port in the kernel's tables`() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 0100007F:1EC8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0
               1: 0100007F:1EC8 0100007F:A000 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0
               2: 0100007F:1EC9 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4713 1 0
            """
        #expect(SocketTable.inodes(in: table, on: 7880, .tcp) == ["4711"])
        #expect(SocketTable.inodes(in: table, on: 7880, .udp) == ["4711", "4712"])
    }

    @Test func `this machine's ports answer: a free one opens, and a used one names this program`() async throws {
        let ports = Ports.system
        #expect(await ports.open(.udp, "127.0.0.1", 0) == nil)
        try await ports.loopback()
        let server = try TestServer()
        #expect(await ports.open(.tcp, "127.0.0.1", server.port) == .inUse)
        #expect(ports.user(.tcp, server.port)?.hasPrefix("connectlive (process ") == true)
    }

    @Test func `each check has a row on the page of problems`() throws {
        let page = try Checkout.text("docs/troubleshooting.md")
        let server = ServerUnderTest(name: "", health: { 200 }, signIn: {}, join: { "" })
        let stun = try #require(STUNServer("a"))
        let checks = Self.checks(Self.healthy()) + [server.check, stun.check(Self.healthy())]
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| `") }
        for name in Set(checks.map(\.name)) { #expect(rows.contains { $0.contains("`\(name)`") }, "\(name)") }
    }

    @Test func `each element that is looked for is of a package that setup installs`() throws {
        let lines = try Checkout.text("scripts/packages.txt").split(separator: "\n")
        let packages = Set(
            lines.filter { $0.hasPrefix("build ") }.compactMap { line in
                line.split(separator: " ").dropFirst().first.map(String.init)
            })
        let environment = SystemEnvironment()
        for element in Machine.neededElements + Machine.usefulElements.flatMap(\.elements) {
            let package = environment.package(ofElement: element)
            #expect(packages.contains(package), "\(element) is of \(package)")
        }
    }

    // MARK: The command

    private struct Report: Decodable {
        struct Entry: Decodable {
            let check: String
            let level: String
            let text: String
            let fix: String?
        }

        let level: String
        let findings: [Entry]
    }

    @Test func `the command checks this machine and a server, and its exit code follows the worst finding`() throws {
        let server = try TestServer()
        // The file of the server names it.
        let result = try CommandLineTool.run(["doctor", "--quick", "--json"], folder: server.folder, seconds: 120)
        let report = try JSONDecoder().decode(Report.self, from: Data(result.output.utf8))
        #expect(result.status == (report.level == "failure" ? 1 : 0), "\(result.output)")
        let texts = report.findings.filter { $0.check == "server" }
        #expect(texts.map(\.level) == ["ok", "ok", "ok"], "\(texts)")
        #expect(texts.last?.text.contains("media connected directly over UDP") == true)
        #expect(report.findings.allSatisfy { $0.level == "ok" || $0.fix?.isEmpty == false })
        #expect(report.findings.contains { $0.check == "GStreamer" && $0.level == "ok" })
    }

    @Test func `a server that is not there makes the command fail with the fix`() throws {
        let result = try CommandLineTool.run(
            ["doctor", "--quick", "--server", "ws://127.0.0.1:1"], folder: TemporaryFolder(), seconds: 120)
        #expect(result.status == 1)
        #expect(result.output.contains("failure  server: The server ws://127.0.0.1:1 is unreachable"))
        #expect(result.output.contains("fix: Start it (connectlive serve)"))
    }
}

/// A machine with all elements but some.
private struct InstalledElements: PlanEnvironment {
    var missing: Set<String> = []
    var unusable: Set<String> = []
    var secondsPerFrame = 0.004
    var window: String? = "ximagesink"

    func hasElement(_ factory: String) -> Bool { !missing.contains(factory) && !isForeign(factory) }
    func canOpen(_ factory: String) -> Bool { hasElement(factory) && !unusable.contains(factory) }
    func package(ofElement factory: String) -> String { SystemEnvironment().package(ofElement: factory) }
    func camera(_ device: String) throws(MediaError) -> CameraChoice {
        throw MediaError(code: MediaError.Code.cameraAbsent, message: "There is no camera \(device).")
    }
    func file(_ path: String) throws(MediaError) -> MediaFileInfo {
        throw MediaError(code: MediaError.Code.fileNotFound, message: "There is no file \(path).")
    }
    func windowSink() -> String? { window }
    func soundSink() -> String? { nil }
    func soundSource() -> String? { nil }
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { secondsPerFrame }

    /// Decoders of hardware.
    private func isForeign(_ factory: String) -> Bool {
        ["nv", "v4l2", "mpp"].contains(where: factory.hasPrefix) || factory.hasPrefix("va") && factory.hasSuffix("dec")
    }
}

internal import ArgumentParser
internal import ConnectLiveSDK
internal import Foundation
internal import PeerLoop

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check whether this machine can call: devices, plugins, encoders, ports, limits and clock.",
        discussion: """
            Prints a line for each check, and a fix for each problem. Measures each encoder for a second. Checks the server \
            and the TURN servers that it names too if --server, CONNECTLIVE_SERVER or a running 'serve' of this user names \
            one. Exits with 1 if there is a failure; a warning does not change the exit code.
            """)

    @Flag(help: "Print JSON.") var json = false

    @Flag(help: "Do not measure encoders and decoders.") var quick = false

    @Option(
        help: ArgumentHelp(
            "Ask this STUN server for the public address of this machine (default port: 3478).", valueName: "host:port")
    )
    var stun: String?

    @OptionGroup var server: ServerFlags
    @OptionGroup var network: NetworkFlags

    func validate() throws {
        if let stun, STUNServer(stun) == nil {
            throw ValidationError("--stun is \"\(stun)\"; write HOST:PORT or HOST, such as stun.example.org:3478.")
        }
    }

    func run() async throws {
        let machine = Machine()
        var checks = machine.codecChecks.filter { !quick || $0.stage != .alone } + machine.deviceChecks
        checks += machine.systemChecks
        var config = Config()
        network.apply(to: &config)
        let tested = try server.knownAddress.map { try ServerUnderTest(server, address: $0, config: config) }
        if let tested { checks.append(tested.check) }
        if let stun = stun.flatMap(STUNServer.init) { checks.append(stun.check(machine)) }
        let relays = (try? network.servers().servers) ?? []
        checks += relays.map { server in
            server.relayTransport == nil ? STUNServer(server).check(machine) : RelayUnderTest(server: server).check
        }
        var report = DoctorReport()
        await run(checks, into: &report)
        // Those that the server has named by now. Media that goes directly would not show that they are of no use.
        await run(tested?.relays.named.map { RelayUnderTest(server: $0).check } ?? [], into: &report)
        Console.say(json ? try report.json() : report.conclusion)
        if report.worst == .failure { throw ExitCode(1) }
    }

    private func run(_ checks: [Check], into report: inout DoctorReport) async {
        await CheckRunner().run(checks) { check, findings in
            let lines = report.add(findings, of: check.name)
            if !json { for line in lines { Console.say(line.printable) } }
        }
    }
}

/// The findings of all checks.
struct DoctorReport: Encodable {
    struct Entry: Encodable {
        let check: String
        let level: Finding.Level
        let text: String
        let fix: String?
    }

    private(set) var findings: [Entry] = []

    var worst: Finding.Level { findings.map(\.level).max() ?? .ok }

    private enum CodingKeys: String, CodingKey { case level, findings }

    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(worst, forKey: .level)
        try fields.encode(findings, forKey: .findings)
    }

    /// Returns the lines to print for these findings.
    mutating func add(_ findings: [Finding], of check: String) -> [String] {
        self.findings += findings.map { Entry(check: check, level: $0.level, text: $0.text, fix: $0.fix) }
        let width = "failure".count
        return findings.flatMap { finding in
            let level = finding.level.rawValue.padding(toLength: width, withPad: " ", startingAt: 0)
            let first = "\(level)  \(check): \(finding.text)"
            return finding.fix.map { [first, String(repeating: " ", count: width) + "  fix: \($0)"] } ?? [first]
        }
    }

    var conclusion: String {
        func count(_ level: Finding.Level) -> Int { findings.count { $0.level == level } }
        let (failures, warnings) = (count(.failure), count(.warning))
        let warned = Figures.count(warnings, "warning")
        if failures > 0 { return "\(Figures.count(failures, "failure")) and \(warned)." }
        return warnings > 0 ? "No failure, and \(warned). This machine can call." : "This machine can call."
    }

    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
}

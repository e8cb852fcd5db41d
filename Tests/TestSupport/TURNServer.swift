import Foundation

/// coturn on free ports of loopback, with a folder of its own. It ends with the value.
public final class TURNServer {
    /// The user and password of a server without a secret.
    public static let user = "ada"
    public static let password = "lovelace"

    private let process = Process()
    private let folder = TemporaryFolder()
    /// The port of UDP and TCP.
    public let port: Int
    public let tlsPort: Int
    /// The file with the server's certificate, which is its own authority.
    public var certificate: String { folder.file("cert.pem") }

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// - Parameters:
    ///   - secret: of credentials that expire (`use-auth-secret`). Nil means `user` and `password`.
    ///   - arguments: more for turnserver.
    public init(secret: String? = nil, _ arguments: [String] = []) throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/turnserver") else {
            throw Failure(description: "There is no /usr/bin/turnserver. Run scripts/setup test.")
        }
        let ports = try Self.freePorts(2)
        (port, tlsPort) = (ports[0], ports[1])
        try Self.run(
            "/usr/bin/openssl",
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
                + ["-keyout", folder.file("key.pem"), "-out", folder.file("cert.pem"), "-subj", "/CN=localhost"]
                + ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"])
        process.executableURL = URL(fileURLWithPath: "/usr/bin/turnserver")
        process.arguments =
            ["-n", "--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1", "--listening-port", "\(port)"]
            + [
                "--tls-listening-port", "\(tlsPort)", "--allow-loopback-peers", "--no-cli", "--no-dtls", "--realm",
                "test",
            ]
            + ["--cert", certificate, "--pkey", folder.file("key.pem"), "--pidfile", folder.file("pid")]
            + ["--db", folder.file("db"), "--log-file", folder.file("log"), "--simple-log", "--verbose"]
            + (secret.map { ["--use-auth-secret", "--static-auth-secret", $0] }
                ?? ["--lt-cred-mech", "--user", "\(Self.user):\(Self.password)"])
            + arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
        for keyPath in [\Process.standardInput, \Process.standardOutput, \Process.standardError] {
            process[keyPath: keyPath] = FileHandle.nullDevice
        }
        try process.run()
        let deadline = ContinuousClock.now + .seconds(20)
        let listensForDatagrams = !arguments.contains("--no-udp")
        while !Self.accepts(tlsPort) || !Self.accepts(port)
            || (listensForDatagrams && !Self.hasDatagramSocket(port))
        {
            guard process.isRunning, ContinuousClock.now < deadline else {
                let log = (try? String(contentsOfFile: folder.file("log"), encoding: .utf8)) ?? ""
                throw Failure(description: "turnserver does not listen at \(port) and \(tlsPort): \(log)")
            }
            usleep(20_000)
        }
    }

    deinit { end() }

    /// Ends the server at once, as a crash would.
    public func end() {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    private var log: [Substring] {
        ((try? String(contentsOfFile: folder.file("log"), encoding: .utf8)) ?? "").split(separator: "\n")
    }

    /// How many allocations clients have got.
    public var allocated: Int { log.count { $0.contains(": new, realm=") } }

    /// How many allocations clients have freed.
    public var freed: Int { log.count { $0.contains("refreshed") && $0.contains("lifetime=0") } }

    public var udp: String { "turn:127.0.0.1:\(port)?transport=udp" }
    public var tcp: String { "turn:127.0.0.1:\(port)?transport=tcp" }
    public var tls: String { "turns:localhost:\(tlsPort)?transport=tcp" }

    private static func run(_ program: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(description: "\(program) ended with \(process.terminationStatus). Run scripts/setup test.")
        }
    }

    /// Ports that are free for UDP and TCP.
    private static func freePorts(_ count: Int) throws -> [Int] {
        var sockets: [Int32] = []
        defer { for socket in sockets { close(socket) } }
        var found: [Int] = []
        while found.count < count {
            let datagrams = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
            let stream = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            sockets += [datagrams, stream]
            guard sockets.count < 64 else { throw Failure(description: "No port is free.") }
            guard let port = bind(datagrams, to: 0), bind(stream, to: port) != nil else { continue }
            found.append(Int(UInt16(bigEndian: port)))
        }
        return found
    }

    /// Binds a socket to a port of loopback, in network order. Returns the port, or nil if it is not free.
    private static func bind(_ socket: Int32, to port: in_port_t) -> in_port_t? {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        address.sin_port = port
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            } ? pointer.pointee.sin_port : nil
        }
    }

    /// Whether a process has bound the UDP port of loopback.
    private static func hasDatagramSocket(_ port: Int) -> Bool {
        let sockets = (try? String(contentsOfFile: "/proc/net/udp", encoding: .utf8)) ?? ""
        return sockets.contains(" 0100007F:" + String(format: "%04X", port) + " ")
    }

    private static func accepts(_ port: Int) -> Bool {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        address.sin_port = in_port_t(port).bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}

internal import ArgumentParser
internal import Foundation
internal import Logging
internal import RoomProtocol
internal import RoomServer

extension RoomServer.ICE: ExpressibleByArgument {}

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the room server and its web page.",
        discussion: "Without a service key, it creates one for this run. It writes its address and key to a file that "
            + "only you can read, where the other commands find them.")

    @Option(
        help: ArgumentHelp(
            "Address and port, or one of them. 0.0.0.0 listens on all IPv4 addresses of this machine, [::] on the IPv6 "
                + "ones too (default: 127.0.0.1:7880).",
            valueName: "host:port"),
        transform: { try ListenAddress($0) })
    var listen = ListenAddress(host: "127.0.0.1", port: ListenAddress.defaultPort)

    @Flag(help: "Let browsers on other machines join through the web page without a key.")
    var open = false

    @Option(
        help: ArgumentHelp(
            "lite uses one UDP port for all media. full gives each session UDP ports of its own and checks the clients' "
                + "addresses too.",
            valueName: "lite|full"))
    var ice = RoomServer.ICE.lite

    @Option(
        help: ArgumentHelp(
            "The UDP port of all media, or FIRST-LAST, one for each of the --threads; the rest stays unused. 0 means any free port (default: the "
                + "number of --listen's port, or any free port if another program uses it).",
            valueName: "port"),
        transform: ServeCommand.ports)
    var udpPort: ClosedRange<UInt16>?

    @Option(
        help: ArgumentHelp(
            "The address at which clients reach a server behind a 1:1 NAT. Repeat it for IPv4 and IPv6.",
            valueName: "address"))
    var publicAddress: [String] = []

    @Option(
        help: ArgumentHelp(
            "Threads that forward media. The default is one for each core but one.",
            valueName: "count"))
    var threads = RoomServer.defaultThreads

    @Option(
        help: ArgumentHelp(
            "Participants of one room on one thread. Further ones go to another thread, if there are several.",
            valueName: "count"))
    var roomLoopSize = RoomServer.defaultRoomLoopSize

    @Option(help: "Service id (default: CONNECTLIVE_SERVICE_ID, else one created for this run).") var serviceId: String?

    @Option(help: "Service secret (default: CONNECTLIVE_SERVICE_SECRET, else one created for this run).")
    var serviceSecret: String?

    @Flag(help: "Log participants that join, publish and leave.") var verbose = false

    func validate() throws {
        guard ice == .lite || udpPort == nil && publicAddress.isEmpty else {
            throw ValidationError("--udp-port and --public-address need --ice lite.")
        }
        guard (1...RoomServer.threadLimit).contains(threads) else {
            throw ValidationError("--threads must be 1 to \(RoomServer.threadLimit).")
        }
        guard roomLoopSize > 0 else { throw ValidationError("--room-loop-size must be 1 or more.") }
        if let udpPort, udpPort.count > 1, udpPort.count < threads {
            throw ValidationError(
                "--udp-port names \(udpPort.count) ports for \(threads) threads. Give one, or one for each.")
        }
        for address in publicAddress where !RoomServer.isReachableAddress(address) {
            throw ValidationError(
                "--public-address \(address) is not an IPv4 or IPv6 address that other machines reach.")
        }
        guard publicAddress.isEmpty || !listen.isLoopback else {
            throw ValidationError(
                "--public-address needs a --listen address that other machines reach, such as 0.0.0.0.")
        }
    }

    func run() async throws {
        let interruption = Interruption()
        var configuration = Serving.configuration(listen, service: try service(), isOpen: open, isVerbose: verbose)
        configuration.ice = ice
        configuration.mediaPorts = udpPort
        configuration.publicAddresses = publicAddress
        configuration.threads = threads
        configuration.roomLoopSize = roomLoopSize
        let server = try await RoomServer.start(configuration)
        let file = ServerFile(
            server: server.url, serviceId: server.configuration.service.id,
            serviceSecret: server.configuration.service.secret, process: getpid())
        let path = ServerFile.defaultPath()
        // In a container, an earlier server that was killed had the same process number.
        let previous = (try? ServerFile.read(from: path)).flatMap { $0.isRunning && $0.process != getpid() ? $0 : nil }
        do throws(RoomError) {
            try file.write(to: path)
        } catch {
            await server.stop()
            throw error
        }
        Console.say("Serving rooms at \(server.url)")
        if let other = Self.address(publicAddress, listen) {
            Console.say(
                "Commands on other machines need --server ws://\(other):\(server.port), and the service id and secret.")
        }
        Console.say("Other commands of this user find it through \(path)")
        if let previous {
            Console.say("Until it ends, they need --server and the service for the server at \(previous.server).")
        }
        for line in Serving.mediaLines(server) { Console.say(line) }
        for line in Serving.pageLines(listen, publicAddress, port: server.port, isOpen: open, query: "") {
            Console.say(line)
        }
        await interruption.wait(seconds: nil)
        file.remove(from: path, restoring: previous)
        await server.stop()
    }

    /// Reads `PORT` or `FIRST-LAST`.
    private static func ports(_ text: String) throws -> ClosedRange<UInt16> {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { UInt16($0) }
        guard (1...2).contains(ends.count), let first = ends[0], let last = ends[ends.count - 1], first <= last,
            ends.count == 1 || first > 0
        else {
            throw ValidationError("Write PORT or FIRST-LAST, with ports from 1 to 65535. 0 alone means any free port.")
        }
        return first...last
    }

    /// An address for commands on other machines.
    private static func address(_ publicAddresses: [String], _ listen: ListenAddress) -> String? {
        if listen.isLoopback { return nil }
        return (publicAddresses.first ?? listen.reachable.first).map(ListenAddress.inURL)
    }

    private func service() throws(RoomError) -> ServiceKey {
        let environment = ProcessInfo.processInfo.environment
        let id = serviceId ?? environment["CONNECTLIVE_SERVICE_ID"]
        let secret = serviceSecret ?? environment["CONNECTLIVE_SERVICE_SECRET"]
        guard id != nil || secret != nil else { return .development() }
        guard let id, let secret, !id.isEmpty, !secret.isEmpty else {
            throw RoomError(
                .serviceMissing, "A service key is an id and a secret. Set both --service-id and --service-secret.")
        }
        return ServiceKey(id: id, secret: secret)
    }
}

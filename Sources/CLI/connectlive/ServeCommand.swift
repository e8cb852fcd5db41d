internal import ArgumentParser
internal import Foundation
internal import Logging
internal import RoomClient
internal import RoomProtocol
internal import RoomRecording
internal import RoomServer
internal import Synchronization

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

    @Option(
        help: ArgumentHelp(
            "PEM file with the server's certificate and those between it and its authority: the page and signalling then use "
                + "TLS, and browsers on other machines may use their cameras. A file that changes is read again.",
            valueName: "file"))
    var tlsCertificate: String?

    @Option(help: ArgumentHelp("PEM file with the private key of --tls-certificate.", valueName: "file"))
    var tlsKey: String?

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
            "The UDP port of all media, or FIRST-LAST, one for each of the --threads; the rest stays unused. 0 means any free "
                + "port (default: the number of --listen's port, or any free port if another program uses it).",
            valueName: "port"),
        transform: ServeCommand.ports)
    var udpPort: ClosedRange<UInt16>?

    @Option(
        help: ArgumentHelp(
            "A TCP port for the media of browsers whose network blocks UDP, such as 7881. 0 means any free port (default: "
                + "none).",
            valueName: "port"))
    var tcpPort: UInt16?

    @Option(
        help: ArgumentHelp(
            "The address at which clients reach a server behind a 1:1 NAT. Repeat it for IPv4 and IPv6.",
            valueName: "address"))
    var publicAddress: [String] = []

    @Option(
        name: .customLong("turn"),
        help: ArgumentHelp(
            "A TURN or STUN server for clients, such as turns:turn.example.org:443. Repeat it for up to "
                + "\(ICEServerInfo.urlLimit). CONNECTLIVE_TURN_SECRET is coturn's static-auth-secret (default: "
                + "CONNECTLIVE_TURN).",
            valueName: "url"))
    var relays: [String] = []

    @Option(
        help: ArgumentHelp(
            "Threads that forward media, by default one for each core but one.",
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

    @Option(
        help: ArgumentHelp(
            "Keep a participant whose connection broke for this many seconds, so that its client can resume; 0 to 3600.",
            valueName: "seconds"))
    var resumeSeconds = 30

    @Option(
        help: ArgumentHelp(
            "Record streams whose publishers ask for it ('publish --record') in this folder, one Matroska file for each. It is "
                + "created if it does not exist (default: record nothing).",
            valueName: "folder"))
    var recordings: String?

    @Option(
        help: ArgumentHelp(
            "Videos that a participant can receive at once, if it asks for so many; 0 to \(RoomServer.receiverLimit).",
            valueName: "count"))
    var maxReceivers = 20

    @Flag(help: "Log participants that join, publish and leave, and requests that the server refuses.") var verbose =
        false

    func validate() throws {
        guard ice == .lite || udpPort == nil && tcpPort == nil && publicAddress.isEmpty else {
            throw ValidationError("--udp-port, --tcp-port and --public-address need --ice lite.")
        }
        guard tcpPort == nil || (udpPort?.count ?? 1) == 1 else {
            throw ValidationError("--tcp-port needs one port in --udp-port, for all threads.")
        }
        guard tcpPort == nil || tcpPort == 0 || tcpPort.map({ Int($0) }) != listen.port else {
            throw ValidationError(
                "--tcp-port \(listen.port) is the port of signalling. Choose another one, such as 7881.")
        }
        guard (tlsCertificate == nil) == (tlsKey == nil) else {
            throw ValidationError("--tls-certificate and --tls-key need each other.")
        }
        guard (1...RoomServer.threadLimit).contains(threads) else {
            throw ValidationError("--threads must be 1 to \(RoomServer.threadLimit).")
        }
        guard (0...3600).contains(resumeSeconds) else { throw ValidationError("--resume-seconds must be 0 to 3600.") }
        guard (0...RoomServer.receiverLimit).contains(maxReceivers) else {
            throw ValidationError("--max-receivers must be 0 to \(RoomServer.receiverLimit).")
        }
        guard roomLoopSize > 0 else { throw ValidationError("--room-loop-size must be 1 or more.") }
        if let udpPort, udpPort.count > 1, udpPort.count < threads {
            throw ValidationError(
                "--udp-port names \(udpPort.count) ports for \(threads) threads. Give one, or one for each.")
        }
        guard publicAddress.isEmpty || !listen.isLoopback else {
            throw ValidationError(
                "--public-address needs a --listen address that other machines reach, such as 0.0.0.0.")
        }
        // Media at 0.0.0.0 has IPv6 too.
        for address in try publicAddresses() where !listen.serves(address) && !listen.isEverywhere {
            throw ValidationError(
                "--public-address \"\(address)\" needs a --listen address of its own family, such as "
                    + (address.contains(":") ? "[::]." : "0.0.0.0."))
        }
        _ = try relayService()
        // Plugins that are loaded later would meet the limit in the middle of their work.
        if let error = RoomServer.raiseDescriptorLimit(threads: threads) { throw error }
    }

    /// The public addresses in their usual form, each once.
    private func publicAddresses() throws -> [String] {
        var addresses: [String] = []
        for text in publicAddress {
            let isBracketed = text.hasPrefix("[") && text.hasSuffix("]") && text.contains(":")
            let address = RoomServer.canonicalAddress(isBracketed ? String(text.dropFirst().dropLast()) : text)
            guard let address, RoomServer.isReachableAddress(address) else {
                throw ValidationError(
                    "--public-address \"\(text)\" is not an IPv4 or IPv6 address that other machines reach.")
            }
            if !addresses.contains(address) { addresses.append(address) }
        }
        return addresses
    }

    func run() async throws {
        let interruption = Interruption()
        var configuration = Serving.configuration(listen, service: try service(), isOpen: open, isVerbose: verbose)
        configuration.ice = ice
        configuration.mediaPorts = udpPort
        configuration.tcpPort = tcpPort
        let publicAddresses = try publicAddresses()
        configuration.publicAddresses = publicAddresses
        configuration.relays = try relayService()
        configuration.threads = threads
        configuration.roomLoopSize = roomLoopSize
        configuration.graceSeconds = resumeSeconds
        configuration.maximumReceivers = maxReceivers
        if let tlsCertificate, let tlsKey {
            configuration.tls = TLSFiles(certificate: tlsCertificate, key: tlsKey)
        }
        let folder = try recordings.map { path throws(RoomError) in try RecordingFolder(path, log: configuration.log) }
        configuration.recorder = folder
        let present = Mutex<ServerAnnouncement?>(nil)
        configuration.onCertificate = { certificate in present.withLock { $0 }?.replace(certificate) }
        let server = try await RoomServer.start(configuration)
        let announcement: ServerAnnouncement
        do throws(RoomError) {
            announcement = try ServerAnnouncement(of: server)
        } catch {
            await server.stop()
            throw error
        }
        present.withLock { $0 = announcement }
        printLines(about: server, announcement, publicAddresses, recordingsIn: folder?.path)
        await interruption.wait(seconds: nil)
        announcement.end()
        await server.stop()
        await folder?.finish()
    }

    private func printLines(
        about server: RoomServer, _ announcement: ServerAnnouncement, _ publicAddresses: [String],
        recordingsIn folder: String?
    ) {
        Console.say("Serving rooms at \(server.url)")
        let names = server.certificate.map(Serving.publicNames)
        if let other = names?.first ?? Self.address(publicAddresses, listen), !listen.isLoopback {
            let scheme = names == nil ? "ws" : "https"
            Console.say(
                "Commands on other machines need --server \(scheme)://\(other):\(server.port), and the service id and "
                    + "secret.")
        } else if listen.isLoopback, !open {
            Console.say("Only this machine reaches it. Others need a proxy here, or --listen 0.0.0.0.")
        }
        for line in Serving.certificateLines(server.certificate, now: Date().timeIntervalSince1970) {
            Console.say(line)
        }
        for line in announcement.lines { Console.say(line) }
        for line in Serving.mediaLines(server) { Console.say(line) }
        if let folder { Console.say("Recordings go to \(folder)") }
        for line in Serving.relayLines(server.configuration.relays) { Console.say(line) }
        for address in publicAddresses where !listen.serves(address) {
            Console.say("Only media uses \(address): signalling at this address needs --listen [::].")
        }
        if let limit = server.participantsByDescriptors, limit < server.configuration.maximumParticipants {
            Console.say(
                "The limit on open files allows about \(limit) participants. For "
                    + "\(server.configuration.maximumParticipants), raise it: ulimit -n \(RoomServer.usualDescriptorLimit)"
            )
        }
        for line in Serving.pageLines(
            listen, publicAddresses, port: server.port, isOpen: open, names: names, query: "")
        {
            Console.say(line)
        }
        let service = server.configuration.service
        for line in Serving.warnings(listen, service, isEncrypted: names != nil) { Console.line("warning: \(line)") }
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
        return (publicAddresses.first(where: listen.serves) ?? listen.reachable.first).map(ListenAddress.inURL)
    }

    /// The STUN and TURN servers for clients. Nil without any.
    private func relayService() throws -> RelayService? {
        let variables = ProcessInfo.processInfo.environment
        let named = (variables[TURNSettings.urls] ?? "").split(separator: ",").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        let urls = relays.isEmpty ? named.filter { !$0.isEmpty } : relays
        guard !urls.isEmpty else { return nil }
        func value(_ name: String) -> String? { variables[name].flatMap { $0.isEmpty ? nil : $0 } }
        var key: RelayService.Key?
        if let secret = value(TURNSettings.secret) {
            key = .secret(secret)
        } else if let user = value(TURNSettings.user), let password = value(TURNSettings.password) {
            key = .fixed(user: user, password: password)
        }
        do throws(RoomError) {
            return try RelayService(urls: urls, key: key)
        } catch {
            throw ValidationError("\(error.message)")
        }
    }

    private func service() throws(RoomError) -> ServiceKey {
        let id = Given(serviceId, option: "--service-id", variable: "CONNECTLIVE_SERVICE_ID")
        let secret = Given(serviceSecret, option: "--service-secret", variable: "CONNECTLIVE_SERVICE_SECRET")
        for (value, other) in [(id, secret), (secret, id)] {
            guard let place = value.place else { continue }
            if value.text.isEmpty {
                throw RoomError(.serviceMissing, "\(place) is empty. Set it, or leave out the id and the secret.")
            }
            if other.place == nil {
                throw RoomError(
                    .serviceMissing,
                    "\(place) is set, but a service key is an id and a secret. Set \(other.option) or \(other.variable) "
                        + "too, or neither.")
            }
        }
        return id.place == nil ? .development() : ServiceKey(id: id.text, secret: secret.text)
    }

    /// A value of the command line or else of the environment.
    private struct Given {
        let option: String
        let variable: String
        var text = ""
        /// The option or the variable that has the value. Nil if none does.
        var place: String?

        init(_ value: String?, option: String, variable: String) {
            (self.option, self.variable) = (option, variable)
            if let value {
                (text, place) = (value, option)
            } else if let value = ProcessInfo.processInfo.environment[variable] {
                (text, place) = (value, variable)
            }
        }
    }
}

internal import ArgumentParser
internal import Foundation
internal import Logging
internal import RoomServer
internal import RoomTLS

/// Where a server listens.
struct ListenAddress: CustomStringConvertible {
    static let defaultPort = 7880

    var host: String
    var port: Int

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Reads `HOST:PORT`, `HOST` or `PORT`. An IPv6 host before a port is in brackets.
    init(_ text: String) throws {
        let (name, port) = Self.split(text)
        guard let host = name == "localhost" ? "127.0.0.1" : RoomServer.canonicalAddress(name), !Self.isGroup(host),
            let port = Int(port), (0...65535).contains(port)
        else {
            throw ValidationError(
                "Write HOST:PORT, HOST or PORT: a literal address of this machine, such as 192.168.1.5 or [fd00::5], and "
                    + "a port from 0 to 65535.")
        }
        self.init(host: host, port: port)
    }

    private static func split(_ text: String) -> (host: String, port: String) {
        let standard = "\(defaultPort)"
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            let host = String(text[text.index(after: text.startIndex)..<end])
            let rest = text[text.index(after: end)...]
            // Anything else than a port cannot be read as one.
            return (host, rest.isEmpty ? standard : rest.hasPrefix(":") ? String(rest.dropFirst()) : String(rest) + "?")
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        switch parts.count {
        case 1: return Int(text) == nil ? (text, standard) : ("127.0.0.1", text)
        case 2: return (parts[0], parts[1])
        default: return (text, standard)
        }
    }

    /// Whether a canonical address means several machines: multicast (RFC 5771, RFC 4291) or broadcast.
    private static func isGroup(_ host: String) -> Bool {
        guard host.contains(":") else { return UInt8(host.prefix { $0 != "." }).map { $0 >= 224 } ?? true }
        let first = host.prefix { $0 != ":" }
        return first.count == 4 && first.hasPrefix("ff")
    }

    var description: String { "\(Self.inURL(host)):\(port)" }
    var isLoopback: Bool { RoomServer.isLoopback(host) }
    /// Whether it means all addresses of this machine.
    var isEverywhere: Bool { ["0.0.0.0", "::"].contains(host) }
    /// The addresses at which other machines may reach a server that listens here.
    var reachable: [String] {
        switch host {
        case "0.0.0.0": RoomServer.machineAddresses(withIPv6: false)
        case "::": RoomServer.machineAddresses(withIPv6: true)
        default: isLoopback ? [] : [host]
        }
    }

    /// Whether TCP connections to an address of this machine, or to one that a NAT maps to it, reach a server that listens
    /// here.
    func serves(_ address: String) -> Bool { host == "::" || host.contains(":") == address.contains(":") }

    /// The host as a part of a URL.
    static func inURL(_ host: String) -> String { host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host }
}

/// Shared by `serve` and `demo`: the server's configuration, and the lines about its page.
enum Serving {
    static func configuration(
        _ listen: ListenAddress, service: ServiceKey, isOpen: Bool, isVerbose: Bool
    ) -> RoomServer.Configuration {
        var log = Logger(label: "connectlive", factory: StreamLogHandler.standardError(label:))
        log.logLevel = isVerbose ? .info : .warning
        var configuration = RoomServer.Configuration(service: service, log: log)
        configuration.host = listen.host
        configuration.port = listen.port
        configuration.isOpen = isOpen
        return configuration
    }

    /// Where clients send media, and what to do if only this network reaches it.
    static func mediaLines(_ server: RoomServer) -> [String] {
        guard let media = server.media else {
            return ["Media uses UDP ports that the system chooses, some for each session (--ice full)."]
        }
        let ports = media.ports
        let numbers = ports.count == 1 ? "port \(ports.lowerBound)" : "ports \(ports.lowerBound) to \(ports.upperBound)"
        guard !media.addresses.isEmpty else {
            return ["Media uses UDP \(numbers), but this machine has no address that another machine could reach."]
        }
        var lines = ["Media uses UDP \(numbers) of \(media.addresses.joined(separator: ", "))."]
        if let tcpPort = media.tcpPort {
            lines.append("Browsers whose network blocks UDP use TCP port \(tcpPort) of these addresses.")
        }
        if let busy = media.busyPort {
            lines.append(
                "Another program uses UDP port \(busy). Open port \(ports.lowerBound) in the firewall instead, or choose one "
                    + "with --udp-port.")
        }
        if !media.isPublic {
            lines.append(
                "All of these addresses are private. For clients of other networks, name the public one: "
                    + "--public-address ADDRESS.")
        }
        if media.buffer.allowed < media.buffer.wanted {
            let wanted = media.buffer.wanted
            lines.append(
                "The kernel limits the buffers of this port to \(media.buffer.allowed / 1024) KiB, so a busy room may lose "
                    + "packets. To allow \(wanted >> 20) MiB: \(bufferCommand(wanted))")
        }
        return lines
    }

    /// Shorter service secrets get a warning: attempts are limited for each address, but not for many of them.
    private static let shortestSecret = 16

    /// Risks of a server that other machines reach.
    static func warnings(_ listen: ListenAddress, _ service: ServiceKey, isEncrypted: Bool) -> [String] {
        guard !listen.isLoopback else { return [] }
        var lines: [String] = []
        if !isEncrypted {
            lines.append(
                "Signalling is not encrypted: others on the network can read the secret and tokens, and replace the "
                    + "keys of media. Pass --tls-certificate and --tls-key, listen on the address of a VPN, or close "
                    + "this port to all but a proxy with TLS.")
        }
        let length = service.secret.utf8.count
        if length < shortestSecret {
            lines.append(
                "The service secret has \(Figures.count(length, "byte")), so that it may be guessed. Choose one of "
                    + "\(shortestSecret) or more, such as from 'openssl rand -hex 16'.")
        }
        return lines
    }

    /// The STUN and TURN servers that clients are told.
    static func relayLines(_ service: RelayService?) -> [String] {
        guard let service else { return [] }
        let stun = service.reflectors.isEmpty ? [] : ["Clients learn their addresses from \(list(service.reflectors))."]
        let turn =
            service.relays.isEmpty ? [] : ["Clients that cannot reach the media port use \(list(service.relays))."]
        return stun + turn
    }

    private static func list(_ urls: [String]) -> String { urls.joined(separator: ", ") }

    /// Lets the kernel give a socket buffers of so many bytes.
    static func bufferCommand(_ bytes: Int) -> String {
        "sysctl -w net.core.rmem_max=\(bytes) net.core.wmem_max=\(bytes)"
    }

    /// The names and addresses of a certificate by which other machines can reach the server, as parts of a URL.
    static func publicNames(_ certificate: ServerCertificate) -> [String] {
        certificate.names.filter { !$0.hasPrefix("*") && $0 != "localhost" && !RoomServer.isLoopback($0) }
            .map(ListenAddress.inURL)
    }

    /// The names and the end of the server's certificate.
    static func certificateLines(_ certificate: ServerCertificate?, now: Double) -> [String] {
        guard let certificate else { return [] }
        let names = certificate.names.isEmpty ? "no name" : certificate.names.prefix(5).joined(separator: ", ")
        let day = ServerCertificate.day(certificate.expires)
        guard certificate.expires > now else {
            return ["The certificate, for \(names), has expired on \(day): renew it. Clients do not accept it."]
        }
        let days = certificate.daysLeft(now: now)
        let left = days < RoomServer.certificateWarningDays ? "in \(Figures.count(days, "day")): renew it" : "on \(day)"
        return ["The certificate is for \(names), and expires \(left)."]
    }

    /// Each address that a browser can open, and the browser's limits there.
    ///
    /// - Parameter names: those of the certificate. Nil without TLS.
    static func pageLines(
        _ listen: ListenAddress, _ publicAddresses: [String], port: Int, isOpen: Bool, names: [String]? = nil,
        query: String
    ) -> [String] {
        let scheme = names == nil ? "http" : "https"
        func url(_ host: String) -> String { "\(scheme)://\(ListenAddress.inURL(host)):\(port)/\(query)" }
        guard !listen.isLoopback else {
            let page = "In a browser: \(url(listen.host))"
            guard isOpen else { return [page] }
            return [
                page,
                "Only browsers of this machine can join: the server listens on loopback. For others, --open needs a "
                    + "--listen address that other machines reach, such as 0.0.0.0.",
            ]
        }
        var lines = listen.isEverywhere ? ["In a browser on this machine: \(url("127.0.0.1"))"] : []
        guard isOpen else {
            let who = listen.isEverywhere ? "Browsers on other machines" : "Browsers"
            return lines + ["\(who) cannot join. Start with --open to let them in."]
        }
        let all = publicAddresses.filter(listen.serves) + listen.reachable.filter { !publicAddresses.contains($0) }
        let addresses = names.flatMap { $0.isEmpty ? nil : $0 } ?? all
        lines += addresses.map { "In a browser on another machine: \(url($0))" }
        if addresses.isEmpty {
            lines.append("This machine has no address that another machine could open.")
        } else if names == nil {
            lines.append(
                "There the page shows and plays the room but cannot use a camera or microphone: browsers allow those "
                    + "only over HTTPS or on the machine itself. To allow them, start with --tls-certificate and --tls-key, "
                    + "or put a TLS proxy in front of this port.")
        }
        return lines
    }
}

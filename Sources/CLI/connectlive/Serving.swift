internal import ArgumentParser
internal import Foundation
internal import Logging
internal import RoomServer

/// Where a server listens.
struct ListenAddress: CustomStringConvertible {
    static let defaultPort = 7880

    var host: String
    var port: Int

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Reads `HOST:PORT`, `HOST` or `PORT`.
    init(_ text: String) throws {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        let isPort = parts.count == 1 && Int(text) != nil
        let host = isPort ? "127.0.0.1" : parts[0]
        let port = isPort || parts.count == 2 ? Int(parts[parts.count - 1]) : Self.defaultPort
        guard parts.count <= 2, !host.isEmpty, let port, (0...65535).contains(port) else {
            throw ValidationError("Write HOST:PORT, HOST or PORT, with a port from 0 to 65535.")
        }
        self.init(host: host == "localhost" ? "127.0.0.1" : host, port: port)
    }

    var description: String { "\(host):\(port)" }
    var isLoopback: Bool { host.hasPrefix("127.") }
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
                    + "packets. To allow \(wanted >> 20) MiB: sysctl -w net.core.rmem_max=\(wanted) "
                    + "net.core.wmem_max=\(wanted)")
        }
        return lines
    }

    /// Each address that a browser can open, and the browser's limits there.
    static func pageLines(_ host: String, port: Int, isOpen: Bool, query: String) -> [String] {
        guard !host.hasPrefix("127.") else { return ["In a browser: http://\(host):\(port)/\(query)"] }
        let isEverywhere = host == "0.0.0.0"
        var lines = isEverywhere ? ["In a browser on this machine: http://127.0.0.1:\(port)/\(query)"] : []
        guard isOpen else {
            let who = isEverywhere ? "Browsers on other machines" : "Browsers"
            return lines + ["\(who) cannot join. Start with --open to let them in."]
        }
        let addresses = isEverywhere ? RoomServer.machineAddresses() : [host]
        lines += addresses.map { "In a browser on another machine: http://\($0):\(port)/\(query)" }
        if addresses.isEmpty {
            lines.append("This machine has no address that another machine could open.")
        } else {
            lines.append(
                "There the page shows and plays the room but cannot use a camera or microphone: browsers allow those "
                    + "only over HTTPS or on the machine itself. To allow them, put a TLS proxy in front of this port.")
        }
        return lines
    }
}

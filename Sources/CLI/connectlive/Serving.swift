internal import ArgumentParser
internal import Foundation
internal import Logging
internal import RoomServer

/// `HOST:PORT`, `HOST` or `PORT`.
struct ListenAddress: ExpressibleByArgument, CustomStringConvertible {
    static let defaultPort = 7880

    var host: String
    var port: Int

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    init?(argument: String) {
        if let port = Int(argument) {
            self.init(host: "127.0.0.1", port: port)
        } else {
            let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
            guard (1...2).contains(parts.count), !parts[0].isEmpty else { return nil }
            guard let port = parts.count == 2 ? Int(parts[1]) : Self.defaultPort else { return nil }
            self.init(host: parts[0] == "localhost" ? "127.0.0.1" : String(parts[0]), port: port)
        }
        guard (0...65535).contains(port) else { return nil }
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

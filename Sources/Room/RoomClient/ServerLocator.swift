internal import Foundation
package import RoomProtocol

/// How a caller names the server and its key. Error messages refer to it.
package enum ServerNamer: Sendable {
    /// The parameters of `ConnectLive.signIn`.
    case application
    /// The flags of a command.
    case command
    /// The settings of a node.
    case node

    fileprivate enum Item: String {
        case server
        case serviceId = "service-id"
        case serviceSecret = "service-secret"

        /// The environment variable's part after "CONNECTLIVE_".
        var variable: String { rawValue.uppercased().replacing("-", with: "_") }
    }

    /// How to start a server, at the beginning of a sentence.
    fileprivate var start: String {
        switch self {
        case .application: "Run a room server as this user"
        case .command, .node: "Start 'connectlive serve'"
        }
    }

    /// The remedy in an error message.
    fileprivate func remedy(for items: [Item]) -> String {
        let variables = Self.list(items.map { "CONNECTLIVE_\($0.variable)" })
        let names = Self.list(items.map(name))
        return switch self {
        case .application: "pass \(names) to ConnectLive.signIn, or set \(variables)"
        case .command: "pass \(names), or set \(variables)"
        case .node: "set \(names) of the node, or \(variables)"
        }
    }

    /// Such as `a, b and c`.
    private static func list(_ names: [String]) -> String {
        names.count < 2
            ? names.joined() : "\(names.dropLast().joined(separator: ", ")) and \(names.last ?? "")"
    }

    private func name(of item: Item) -> String {
        switch (self, item) {
        case (.application, .server): "endpoint"
        case (.application, .serviceId): "serviceId"
        case (.application, .serviceSecret): "serviceSecret"
        case (.command, _): "--\(item.rawValue)"
        case (.node, _): item.rawValue
        }
    }
}

/// A server, and the service to sign in to.
package struct ServerLocation: Sendable, Equatable {
    package var address: ServerAddress
    /// How the server's certificate is checked.
    package var trust = ServerTrust.system
    package var serviceId: String
    /// Nil if it was not requested.
    package var serviceSecret: String?
}

/// Finds the server and its service: in the caller's values, then the environment (`CONNECTLIVE_SERVER`,
/// `CONNECTLIVE_SERVICE_ID`, `CONNECTLIVE_SERVICE_SECRET`), then the file that `serve` wrote for this user. Each of the
/// three values comes from the first place that has it. The file's secret goes with its own id alone.
package struct ServerLocator: Sendable {
    package var server: String?
    package var serviceId: String?
    package var serviceSecret: String?
    /// A PEM file with the authorities of the server's certificate.
    package var authorities: String?
    package var environment: [String: String]
    package var filePath: String
    package var namer: ServerNamer

    /// Empty text means the same as nil.
    package init(
        server: String? = nil, serviceId: String? = nil, serviceSecret: String? = nil,
        authorities: String? = nil, environment: [String: String] = ProcessInfo.processInfo.environment,
        filePath: String? = nil,
        namer: ServerNamer = .command
    ) {
        self.server = server
        self.serviceId = serviceId
        self.serviceSecret = serviceSecret
        self.authorities = authorities
        self.environment = environment
        self.filePath = filePath ?? ServerFile.defaultPath(environment: environment)
        self.namer = namer
    }

    /// - Parameter needsSecret: false for a caller with a token.
    package func locate(needsSecret: Bool = true) throws(RoomError) -> ServerLocation {
        let given = (
            server: first(server, "CONNECTLIVE_SERVER"), id: first(serviceId, "CONNECTLIVE_SERVICE_ID"),
            secret: first(serviceSecret, "CONNECTLIVE_SERVICE_SECRET")
        )
        // A broken file does not disturb a caller that passes all values. It may still have the server's certificate.
        let isComplete = given.server != nil && given.id != nil && (given.secret != nil || !needsSecret)
        let file = isComplete ? nil : try ServerFile.read(from: filePath)
        guard let server = given.server ?? file?.server else {
            throw RoomError(
                .serviceMissing,
                "No server is named. \(namer.start), which writes its address and key to \(filePath). For another server, "
                    + "\(namer.remedy(for: [.server] + missing(given.id, given.secret, needsSecret))).")
        }
        let address = try ServerAddress(server)
        let trust = isComplete ? trust(in: address) : trust(in: address, file)
        // The secret of one service does not go with the id of another one.
        let isOther = given.id != nil && given.id != file?.serviceId
        let pair = isOther && needsSecret ? nil : file
        let (id, secret) = (given.id ?? pair?.serviceId, given.secret ?? pair?.serviceSecret)
        guard let id, secret != nil || !needsSecret else {
            throw unknown(missing(id, secret, needsSecret), server)
        }
        return ServerLocation(
            address: address, trust: trust, serviceId: id, serviceSecret: needsSecret ? secret : nil)
    }

    /// The caller's authorities, else the certificate in the file if it is of this server, else the authorities of the
    /// environment, which may be meant for other servers, else those of the system.
    private func trust(in address: ServerAddress, _ file: ServerFile?) -> ServerTrust {
        if let chosen = ServerTrust.of(authorities: authorities) { return chosen }
        if let file, file.certificate != nil, address == (try? ServerAddress(file.server)) {
            return .serverFile(filePath)
        }
        return ServerTrust.of(authorities: environment[ServerTrust.variable]) ?? .system
    }

    /// How the certificate of a server is checked.
    package func trust(in address: ServerAddress) -> ServerTrust {
        trust(in: address, address.isEncrypted ? try? ServerFile.read(from: filePath) : nil)
    }

    private func first(_ given: String?, _ variable: String) -> String? {
        if let given, !given.isEmpty { return given }
        if let value = environment[variable], !value.isEmpty { return value }
        return nil
    }

    private func missing(_ id: String?, _ secret: String?, _ needsSecret: Bool) -> [ServerNamer.Item] {
        (id == nil ? [.serviceId] : []) + (secret == nil && needsSecret ? [.serviceSecret] : [])
    }

    private func unknown(_ items: [ServerNamer.Item], _ server: String) -> RoomError {
        let names = items.map { $0.rawValue.replacing("-", with: " ") }.joined(separator: " and ")
        return RoomError(
            .serviceMissing,
            "The \(names) for the server \(server) \(items.count == 1 ? "is" : "are") not known. On the server's machine, "
                + "run as the user who started it: it writes its key to \(filePath). Elsewhere, "
                + "\(namer.remedy(for: items)).")
    }
}

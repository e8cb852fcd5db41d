internal import ClientCore
internal import ConnectLiveSDK
internal import Foundation
internal import ICELite
internal import MediaNodes
internal import NIOCore
internal import PeerLoop
internal import RTP
internal import RoomClient
internal import RoomProtocol
internal import RoomTLS

/// A room server as the doctor asks it. The functions throw an error whose text is one sentence with the fix.
struct ServerUnderTest: Sendable {
    /// The address, for messages.
    var name: String
    /// Whether the address is of this machine only.
    var isLoopback = true
    /// The HTTP status of its health page.
    var health: @Sendable () async throws -> Int
    /// Its certificate. Nil without TLS.
    var certificate: @Sendable () async throws -> ServerCertificate? = { nil }
    /// Signs in with the service's secret.
    var signIn: @Sendable () async throws -> Void
    /// Joins a room of its own, and leaves it. Returns facts about the media connections.
    var join: @Sendable () async throws -> String
    /// The TURN servers of the call, once `join` has returned or thrown.
    let relays = KnownRelays()
    /// Whether the client names ICE servers of its own.
    var hasOwnServers = false

    /// - Throws: 1305 for an address that can never be reached.
    init(_ flags: ServerFlags, address: String, config: Config = Config()) throws {
        let place = try ServerAddress(address)
        (name, isLoopback) = ("\(place)", place.isLoopback)
        let trust = flags.locator.trust(in: place)
        health = { try await HTTPExchange(.get, Signalling.healthPath).run(at: place, trusting: trust).status }
        certificate = {
            guard place.isEncrypted else { return nil }
            return try await HTTPExchange(.get, Signalling.healthPath).run(at: place, trusting: trust).certificate
        }
        signIn = { try await flags.signIn() }
        hasOwnServers = !config.iceServers.isEmpty
        join = { [relays] in try await Self.joinAndLeave(config, naming: relays) }
    }

    init(
        name: String, health: @escaping @Sendable () async throws -> Int,
        signIn: @escaping @Sendable () async throws -> Void, join: @escaping @Sendable () async throws -> String
    ) {
        (self.name, self.health, self.signIn, self.join) = (name, health, signIn, join)
    }

    var check: Check {
        // Each request has a limit of its own, whose message is more exact.
        Check("server", of: name, limit: .seconds(45), fixIfSilent: "Restart the server, or use another one.") {
            var findings: [Finding] = []
            var isReached = false
            do {
                let status = try await health()
                guard status == 200 else {
                    return [
                        .failure(
                            "\(name) responds with HTTP status \(status), not as a room server.",
                            fix: "Correct the address in --server.")
                    ]
                }
                findings.append(.ok("\(name) is reachable"))
                isReached = true
                if let certificate = try await certificate() {
                    findings.append(Self.finding(of: certificate, now: Date().timeIntervalSince1970))
                }
                try await signIn()
                findings.append(.ok("\(name) accepts the service id and secret"))
                findings.append(.ok("\(name): \(try await join())"))
                return findings
            } catch {
                return findings + [.failure("\(error)", fix: fix(for: error, isReached: isReached))]
            }
        }
    }

    /// The fix for an error, by its code.
    private func fix(for error: any Error, isReached: Bool) -> String {
        let code = Self.code(of: error)
        switch code {
        case .serverCertificate:
            return "Correct the server's certificate, or name its authority with --ca."
        case .serverUnreachable where !isReached:
            let command = isLoopback ? "connectlive serve" : "connectlive serve --listen 0.0.0.0"
            return "Start it (\(command)), or correct the address in --server, or open its TCP port."
        case .serviceInvalid, .serviceMissing:
            return "Pass --service-id and --service-secret of that server."
        case _ where code.name.hasPrefix("turn."):
            return RelayFix.of(code.name, isNamed: !hasOwnServers)
                ?? "Start the TURN server, or correct its address, or open its port in the firewalls."
        case _ where code.isOfMediaConnection:
            let other =
                relays.all.isEmpty
                ? "pass --turn URL"
                : "let the TURN server reach it (allowed-peer-ip and external-ip in turnserver.conf)"
            return "Allow the server's UDP port in the firewalls, usually the number of its TCP port (\(name)), or "
                + "\(other)."
        default: return "Follow the message, or look up its code in docs/errors.md."
        }
    }

    /// Such as `turn.unauthorized`, which ends the error's text in brackets. Code 0 for an error without one.
    private static func code(of error: any Error) -> RoomError.Code {
        let text = "\(error)"
        guard text.hasSuffix("]"), let start = text.lastIndex(of: "[") else { return RoomError.Code(0) }
        return RoomError.Code(wireName: String(text[start...].dropFirst().dropLast()))
    }

    /// So many days before its expiry, a certificate should have been renewed: most are renewed a month before.
    private static let warningDays = 14

    static func finding(of certificate: ServerCertificate, now: Double) -> Finding {
        let (days, day) = (certificate.daysLeft(now: now), ServerCertificate.day(certificate.expires))
        let text = "its certificate expires on \(day), in \(Figures.count(days, "day"))"
        if certificate.expires <= now {
            return .failure(
                "its certificate has expired on \(day).", fix: "Renew it. The server reads the new file by itself.")
        }
        return days < warningDays
            ? .warning(text, fix: "Renew it. The server reads the new file by itself.") : .ok(text)
    }

    private static func joinAndLeave(_ config: Config, naming relays: KnownRelays) async throws -> String {
        let (connected, signal) = AsyncStream.makeStream(of: Void.self)
        let guest = Guest(.seconds(config.reconnectSeconds), endsOnProblem: true) { _ in signal.yield() }
        var config = config
        config.playsRemoteAudio = false
        config.reconnectSeconds = 0
        let room = ConnectLive.createRoom(config: config, delegate: guest)
        room.connect(roomId: "doctor-\(UInt32.random(in: .min ... .max))")
        let end = Task {
            _ = await Result { try await guest.untilEnded() }
            signal.finish()
        }
        defer { end.cancel() }
        let isConnected = await connected.first(where: { true }) != nil
        // A call that needs them may fail because of them.
        relays.set(await room.relays)
        guard isConnected else {
            try await guest.untilEnded()
            throw CancellationError()
        }
        let statistics = await room.statistics()
        room.disconnect()
        try? await guest.untilEnded()
        let time = statistics.connectMilliseconds.map { " after \(Figures.milliseconds($0))" } ?? ""
        let way = statistics.path.map { "\($0)" } ?? "over UDP"
        return "media connected \(way)\(time), with version \(Signalling.versions.max() ?? 0) of the protocol"
            + (statistics.srtpProfile.map { " and \($0)" } ?? "")
    }
}

/// A STUN server, which knows the address from which datagrams of this machine arrive.
struct STUNServer: Sendable {
    static let defaultPort = 3478

    let host: String
    let port: Int
    /// This machine's address and port as the server sees them.
    var ask: @Sendable (_ host: String, _ port: Int) async throws -> TransportAddress = {
        try await address(by: $0, $1)
    }

    init(_ server: ICEServer) { (host, port) = (server.host, Int(server.port)) }

    /// Reads `HOST:PORT` or `HOST`, also behind `stun:`. An IPv6 host before a port is in brackets.
    init?(_ text: String) {
        let place = text.hasPrefix("stun:") ? text.dropFirst("stun:".count) : text[...]
        guard let url = URLComponents(string: "stun://\(place)"), let host = url.host, !host.isEmpty, url.path.isEmpty,
            url.query == nil, url.user == nil
        else { return nil }
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        port = url.port ?? Self.defaultPort
        guard (1...65535).contains(port) else { return nil }
    }

    func check(_ machine: Machine) -> Check {
        let name = "\(ListenAddress.inURL(host)):\(port)"
        return Check(
            "public address", of: name, limit: .seconds(5),
            fixIfSilent: "Allow UDP to \(name) in the firewall, or name another server with --stun."
        ) {
            do {
                let address = try await ask(host, port)
                guard !machine.addresses().contains(address.host) else {
                    return [.ok("\(address.host) by \(name), without address translation")]
                }
                return [
                    .ok(
                        "\(address.host) by \(name), behind address translation (NAT). A server here needs "
                            + "--public-address \(address.host), and its ports forwarded")
                ]
            } catch {
                return [Self.failure(error, at: name)]
            }
        }
    }

    private static func failure(_ error: any Error, at name: String) -> Finding {
        guard (error as? IOError)?.errnoCode != ECONNREFUSED else {
            return .failure(
                "\(name) refuses UDP: no program listens there, or a firewall rejects it.",
                fix: "Correct the port, or allow UDP to \(name) in the firewall, or name another server.")
        }
        return .failure(
            "\(name) cannot be asked: \(explain(error)).",
            fix: "Check the name and the network, or name another server.")
    }

    private struct UnknownHost: Error, CustomStringConvertible {
        let description = "the host name is unknown"
    }

    private static func address(by host: String, _ port: Int) async throws -> TransportAddress {
        let server = try await offPool { try? SocketAddress.makeAddressResolvingHost(host, port: port) }
        guard let server else { throw UnknownHost() }
        let transaction = STUNTransaction(high: .random(in: .min ... .max), low: .random(in: .min ... .max))
        let request = STUNMessage.bindingRequest(transaction)
        return try await DatagramQuestion.ask(request, at: server) { datagram in
            guard let message = STUNMessage(parsing: datagram.span), message.transaction == transaction else {
                return nil
            }
            return message.mappedAddress(in: datagram.span)
        }
    }
}

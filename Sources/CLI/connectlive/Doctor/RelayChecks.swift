internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomClient
internal import Synchronization

/// A TURN server as the doctor tries it.
struct RelayUnderTest: Sendable {
    let server: ICEServer
    /// Allocates a relayed address, and frees it. Blocks.
    var allocate: @Sendable (ICEServer) throws -> RelayTest.Outcome = { server in try RelayTest.run(server) }

    /// Whether the room server named it.
    private var isNamed: Bool { server.origin != .configured }
    private var way: String { "\(server.place) over \(server.relayTransport?.rawValue ?? "UDP")" }

    var check: Check {
        .blocking(
            "TURN", of: way, limit: .seconds(20),
            fixIfSilent: "Open \(server.place) in the firewall, or name another server."
        ) {
            do {
                let outcome = try allocate(server)
                guard outcome.isHidden else { return [.ok("\(way) relays at \(outcome.relay)")] }
                return [
                    .warning(
                        "\(way) relays at \(outcome.relay), which machines of other networks cannot reach",
                        fix: "Set external-ip in turnserver.conf to the server's public address.")
                ]
            } catch {
                let error = error as? TransportError
                let (text, code) = (error?.message ?? "\(way) cannot be tried", error?.code ?? "")
                let port = "\(server.relayTransport == .udp ? "UDP" : "TCP") port \(server.port)"
                let fix =
                    RelayFix.of(code, isNamed: isNamed)
                    ?? (error?.cause as? RelayPlaceProblem).map { RelayFix.of($0, server, isNamed: isNamed) }
                    ?? "Start the TURN server, or open \(port) in the firewalls."
                // The room server names it to clients of other networks too, which may reach it.
                let mayServeOthers = isNamed && code == "turn.unreachable"
                return [mayServeOthers ? .warning(text, fix: fix) : .failure(text, fix: fix)]
            }
        }
    }
}

/// The TURN servers of a call.
final class KnownRelays: Sendable {
    private let servers = Mutex<[ICEServer]>([])

    var all: [ICEServer] { servers.withLock { $0 } }
    /// Those that the room server has named. None for a client that names its own.
    var named: [ICEServer] { all.filter { $0.origin != .configured } }

    func set(_ servers: [ICEServer]) { self.servers.withLock { $0 = servers } }
}

/// The fixes for errors of TURN servers.
enum RelayFix {
    /// Returns nil for a server that does not answer, and for other errors.
    ///
    /// - Parameters:
    ///   - code: such as `turn.unauthorized`
    ///   - isNamed: whether the room server names the TURN server, with the user and the password
    static func of(_ code: String, isNamed: Bool) -> String? {
        switch code {
        case "turn.unauthorized" where isNamed:
            "Start 'connectlive serve' with the secret of the TURN server (\(TURNSettings.secret)), or with its user and "
                + "password. Compare the clocks of both machines."
        case "turn.unauthorized":
            "Correct \(TURNSettings.user) and \(TURNSettings.password). If they are made from a secret, make new ones, "
                + "because they expire, and compare the clocks."
        case "turn.certificate": "Correct the TURN server's certificate, or name its authority with --turn-ca."
        case "turn.refused": "Read the log of the TURN server, and raise its total-quota or user-quota."
        case "turn.missing": "Pass --turn URL here, or to 'connectlive serve'."
        default: nil
        }
    }

    /// The fix for a server that is not reached because of its name or place.
    static func of(_ problem: RelayPlaceProblem, _ server: ICEServer, isNamed: Bool) -> String {
        let option = isNamed ? "--turn of 'connectlive serve'" : "--turn"
        return switch problem {
        case .unknownName:
            "Correct the name \(server.host) in \(option), or check this machine's network and name servers "
                + "(/etc/resolv.conf)."
        case .forbidden: "Pass --turn URL here, or correct the address in \(option)."
        case .noTLS:
            "Name the TLS port of the TURN server in \(option), usually 5349 or 443, or use "
                + "turn:\(server.host):\(server.port)?transport=tcp."
        case .noRoute: "Check the network of this machine, or correct the address in \(option)."
        }
    }
}

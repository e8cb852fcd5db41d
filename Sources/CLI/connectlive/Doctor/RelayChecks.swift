internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomClient

/// A TURN server as the doctor tries it.
struct RelayUnderTest: Sendable {
    let server: ICEServer
    /// Allocates a relayed address, and frees it. Blocks.
    var allocate: @Sendable (ICEServer) throws -> RelayTest.Outcome = { server in try RelayTest.run(server) }

    private var way: String { "\(server.place) over \(server.relayTransport?.rawValue ?? "UDP")" }

    var check: Check {
        .blocking(
            "TURN", limit: .seconds(20), fixIfSilent: "Open \(server.place) in the firewall, or name another server."
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
                return [.failure(error?.message ?? "\(way) cannot be tried", fix: fix(for: error?.code ?? ""))]
            }
        }
    }

    private func fix(for code: String) -> String {
        switch code {
        case "turn.unauthorized":
            "Correct \(TURNSettings.user) and \(TURNSettings.password). Credentials of a room server expire."
        case "turn.certificate": "Correct the server's certificate, or name its authority with --turn-ca."
        case "turn.refused": "Read the log of the TURN server, and raise its total-quota or user-quota."
        default:
            "Start the TURN server, or open \(server.relayTransport == .udp ? "UDP" : "TCP") port \(server.port) in the "
                + "firewalls."
        }
    }
}

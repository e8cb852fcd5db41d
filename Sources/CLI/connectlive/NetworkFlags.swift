internal import ArgumentParser
internal import ConnectLiveSDK
internal import Foundation
internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomClient
internal import RoomProtocol

extension ICEPolicy: ExpressibleByArgument {}

/// The STUN and TURN servers of a command. A password is never an argument, because every user of the machine can read
/// those.
struct NetworkFlags: ParsableArguments {
    @Option(
        name: .customLong("turn"),
        help: ArgumentHelp(
            "A TURN or STUN server, such as turns:turn.example.org:443 or turn:HOST:PORT?transport=tcp. Repeat it for more. "
                + "CONNECTLIVE_TURN_PASSWORD is the password (default: CONNECTLIVE_TURN, else those that the room server "
                + "names).",
            valueName: "url"))
    var urls: [String] = []

    @Option(help: ArgumentHelp("User of the TURN servers (default: CONNECTLIVE_TURN_USER).", valueName: "user"))
    var turnUser: String?

    @Option(
        help: ArgumentHelp(
            "File with the certificates of the authorities that sign those of turns servers, also of servers that the "
                + "room server names (default: CONNECTLIVE_TURN_CA, else those of the system).",
            valueName: "pem"))
    var turnCa: String?

    @Option(
        help: ArgumentHelp(
            "relay sends media through TURN servers alone (default: CONNECTLIVE_ICE_POLICY, else all).",
            valueName: "all|relay"))
    var icePolicy: ICEPolicy?

    /// Throws for servers that can never be used.
    func validate() throws {
        do throws(RoomError) {
            _ = try servers()
        } catch {
            throw ValidationError(error.message)
        }
    }

    func servers() throws(RoomError) -> ICEServers {
        var settings = TURNSettings()
        (settings.urls, settings.user, settings.authorities) = (urls, turnUser, turnCa)
        settings.policy = icePolicy
        settings.credentialAdvice = "Set --turn-user or \(TURNSettings.user), and \(TURNSettings.password)"
        return try settings.servers()
    }

    func apply(to config: inout Config) {
        // Refused by `validate` if it throws.
        guard let found = try? servers() else { return }
        config.iceTransportPolicy = IceTransportPolicy(rawValue: found.policy.rawValue)
        config.namedServerAuthorities = turnCa
        config.iceServers = found.servers.map {
            IceServer(
                urls: [$0.url], name: $0.username, credential: $0.credential, certificateAuthorities: $0.authorities
            )
        }
    }

    /// Tries the named TURN servers in the background, and prints why one is of no use: the call itself goes on without it, so
    /// nothing else would tell. With `--ice-policy relay`, the call itself shows it.
    func tryRelays() {
        if let found = try? servers() { Self.tryRelays(of: found) }
    }

    static func tryRelays(
        of found: ICEServers, allocate: @escaping @Sendable (ICEServer) throws -> Void = { _ = try RelayTest.run($0) },
        say: @escaping @Sendable (String) -> Void = { Console.error($0) }
    ) {
        guard found.policy == .all else { return }
        let relays = found.servers.filter { $0.kind != .stun }
        guard !relays.isEmpty else { return }
        DispatchQueue.global().async {
            for server in relays {
                do { try allocate(server) } catch {
                    // One that cannot be reached from here may serve other networks.
                    guard let error = error as? TransportError, error.code != "turn.unreachable" else { continue }
                    say("\(error.message) (\(error.code)) The call goes on without this server.")
                }
            }
        }
    }
}

internal import PeerLoop
internal import RTP

/// Why the TURN servers of an agent give it no relay, as far as it is known.
struct RelayProblems {
    /// One that a server itself states comes before silence, which a firewall may cause.
    private static let tellingFirst = ["turn.unauthorized", "turn.certificate", "turn.refused", "turn.unreachable"]

    private let servers: [ICEServer]
    private var problems: [ICEServer: TransportError] = [:]
    /// Whether a trial got a relayed address. Then the problems of other servers are not the reason.
    private var hasWorkingServer = false

    init(_ servers: [ICEServer]) { self.servers = servers }

    /// The most telling one. Nil if a server works, or no problem is known.
    var first: TransportError? {
        func rank(_ error: TransportError) -> Int { Self.tellingFirst.firstIndex(of: error.code) ?? .max }
        return hasWorkingServer ? nil : servers.compactMap { problems[$0] }.min { rank($0) < rank($1) }
    }

    /// The servers without a known problem.
    var untested: [ICEServer] { servers.filter { problems[$0] == nil } }

    /// - Parameter problem: nil if the server works.
    mutating func note(_ problem: TransportError?, of server: ICEServer) {
        if let problem { problems[server] = problem } else { hasWorkingServer = true }
    }
}

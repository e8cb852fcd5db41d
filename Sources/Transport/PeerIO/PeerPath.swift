internal import RTP

/// How a peer's datagrams reach the other end: by an ICE agent with sockets of its own, or by the port of a server.
enum PeerPath {
    case agent(ICEAgent)
    case port(PortPath)

    var ufrag: String {
        switch self {
        case .agent(let agent): agent.ufrag
        case .port(let path): path.ufrag
        }
    }

    var password: String {
        switch self {
        case .agent(let agent): agent.password
        case .port(let path): path.password
        }
    }

    var isLite: Bool { if case .port = self { true } else { false } }

    var ignoredCandidates: Int { if case .agent(let agent) = self { agent.ignoredCandidates } else { 0 } }

    /// How long the other end may not respond to checks, or send none, until `.failed`.
    var consent: TimeInterval {
        switch self {
        case .agent: ICEAgent.consent
        case .port: MediaPort.consent
        }
    }

    func gather() throws(TransportError) {
        switch self {
        case .agent(let agent): try agent.gather()
        case .port(let path): path.gather()
        }
    }

    /// Returns false if the credentials cannot be used.
    func setRemote(_ remote: TransportDescription) -> Bool {
        switch self {
        case .agent(let agent):
            return agent.setRemote(ufrag: remote.iceUfrag, password: remote.icePwd)
        case .port(let path):
            path.setRemote(ufrag: remote.iceUfrag)
            return true
        }
    }

    /// A lite end sends no checks, so it needs no candidates.
    func addRemoteCandidate(_ attribute: String) {
        if case .agent(let agent) = self { agent.addRemoteCandidate(attribute) }
    }

    func remoteCandidatesEnded() {
        if case .agent(let agent) = self { agent.remoteCandidatesEnded() }
    }

    func send(_ batch: borrowing DatagramBatch, admit: () -> Bool) -> (sent: Int, refused: Int) {
        switch self {
        case .agent(let agent): agent.send(batch, admit: admit)
        case .port(let path): path.send(batch, admit: admit)
        }
    }

    var selectedPair: (local: String, remote: String)? {
        switch self {
        case .agent(let agent): agent.selectedPair
        case .port(let path): path.selectedPair
        }
    }

    func close() {
        switch self {
        case .agent(let agent): agent.close()
        case .port(let path): path.close()
        }
    }
}

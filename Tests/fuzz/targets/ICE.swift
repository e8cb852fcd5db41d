internal import ICELite
internal import RTP

/// Datagrams from four addresses to an agent with three sessions, which restart, end and begin between them.
///
/// Each datagram follows three bytes: its sender and an action before it, the tenths of a second that pass before it, and
/// its length in units of four bytes. The key of a password is its first letter. Fingerprints are corrected.
func fuzzICE(_ bytes: [UInt8]) {
    let port = FuzzedPort()
    var rest = bytes[...]
    while let head = rest.popFirst(), let pause = rest.popFirst(), let length = rest.popFirst() {
        port.pass(.milliseconds(100 * Int64(pause)))
        port.act(Int(head >> 2 & 7), on: Int(head >> 5) % FuzzedPort.ufrags.count)
        port.receive(withFingerprint(Array(rest.prefix(4 * Int(length)))), from: Int(head & 3))
        rest = rest.dropFirst(4 * Int(length))
    }
    port.end()
}

/// An agent whose promises are checked after each datagram.
private final class FuzzedPort {
    static let ufrags = ["aaaa", "bbbb", "cccc"]
    private static let local = TransportAddress(ipv4: 4, port: 5)
    private static let remotes = [
        TransportAddress(ipv4: 1, port: 1), TransportAddress(ipv4: 1, port: 2),
        TransportAddress(ipv6: 1, 1, port: 1), TransportAddress(ipv4: 1, port: 1, transport: .tcp),
    ].map { AddressPair(remote: $0, local: local) }

    private var agent = ICELiteAgent<FirstLetterKey>(place: ICECredentials.places - 1, of: ICECredentials.places)
    private var sessions: [ICESessionID]
    /// The sessions that have authenticated each address.
    private var checked: [[ICESessionID]] = FuzzedPort.remotes.map { _ in [] }
    private var now = MonotonicTime.zero + .seconds(1)
    private var answer = PacketBuffer()

    init() {
        sessions = []
        for ufrag in Self.ufrags { sessions.append(add(ufrag)) }
    }

    private func add(_ ufrag: String) -> ICESessionID {
        guard let session = agent.add(credentials(ufrag)) else { preconditionFailure("The ufrag is free.") }
        return session
    }

    private func credentials(_ ufrag: String) -> ICECredentials {
        guard let letter = ufrag.first,
            let credentials = ICECredentials(ufrag: ufrag, password: String(repeating: letter, count: 22))
        else { preconditionFailure("These are credentials.") }
        return credentials
    }

    func pass(_ time: TimeInterval) {
        now = now + time
        while let expired = agent.nextExpired(now: now) { precondition(agent.path(of: expired) == nil) }
        precondition(agent.nextTimeout > now)
    }

    func act(_ action: Int, on index: Int) {
        let session = sessions[index]
        switch action {
        case 1: agent.setRemoteUfrag("peer", of: session)
        case 2: _ = agent.restart(session, credentials("dddd"))
        case 3:
            let pair = agent.path(of: session)?.pair
            for remote in Self.remotes where agent.lease(remote, to: index, now: now) { precondition(remote != pair) }
        case 4:
            agent.remove(session)
            precondition(agent.path(of: session) == nil)
            // A restart may have ended the session's first credentials, but nothing else has them.
            sessions[index] = add(Self.ufrags[index])
        default: break
        }
    }

    func receive(_ datagram: [UInt8], from place: Int) {
        let pair = Self.remotes[place]
        let paths = sessions.map { agent.path(of: $0) }
        answer.count = 0
        let received = agent.receive(
            datagram.span, from: pair.remote, to: pair.local, now: now, answer: &answer)
        var changed: ICESessionID?
        switch received {
        case .check(let session, let isSelected):
            precondition(sessions.contains(session) && answer.count > 0 && answer.count <= PacketBuffer.capacity)
            guard let response = STUNMessage(parsing: answer.bytes.span.extracting(0..<answer.count)) else {
                preconditionFailure("The response is no STUN message.")
            }
            precondition(response.kind == .success || response.kind == .error && answer.count <= datagram.count)
            if response.kind == .success { checked[place].append(session) }
            if isSelected { changed = session }
        case .media(let session): precondition(sessions.contains(session) && checked[place].contains(session))
        case .elsewhere, .ignored: break
        }
        if case .check = received {} else { precondition(answer.count == 0) }
        for (session, path) in zip(sessions, paths) {
            if session == changed {
                precondition(agent.path(of: session)?.pair == pair && path?.pair != pair)
            } else {
                precondition(agent.path(of: session)?.pair == path?.pair)
            }
        }
        let selected = sessions.compactMap { agent.path(of: $0)?.pair }
        precondition(Set(selected).count == selected.count && agent.pairCount <= Self.remotes.count)
        precondition((agent.nextTimeout == .never) == selected.isEmpty)
    }

    func end() {
        for session in sessions { agent.remove(session) }
        precondition(agent.count == 0 && agent.pairCount == 0 && agent.nextTimeout == .never)
    }
}

/// Sums are the first letter of the password.
private final class FirstLetterKey: STUNKey {
    private let letter: UInt8

    init(password: [UInt8]) { letter = password[0] }

    func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity {
        STUNIntegrity([UInt8](repeating: letter, count: STUNIntegrity.length).span)
    }
}

internal import ICELite
internal import RTP

/// A message gets an answer only if it is a check of the one session. Every password fits, and a fingerprint is corrected,
/// because no fuzzer finds either.
func fuzzSTUN(_ bytes: [UInt8]) {
    guard let credentials = ICECredentials(ufrag: "evtj", password: "VOkJxbRl1RmTxUk/WvJxBt") else {
        preconditionFailure("These are the credentials of RFC 5769.")
    }
    var agent = ICELiteAgent<OpenKey>(place: 1, of: 3)
    let session = agent.add(credentials)
    let remote = TransportAddress(ipv6: 1, 2, port: 3)
    let local = TransportAddress(ipv4: 4, port: 5)
    var answer = PacketBuffer()
    if let message = STUNMessage(parsing: bytes.span), let address = message.mappedAddress(in: bytes.span) {
        // A response with this address has it again.
        var packet = PacketBuffer()
        packet.beginSTUN(.success, message.transaction)
        packet.addMappedAddress(address, message.transaction)
        let copy = packet.bytes.span.extracting(0..<packet.count)
        precondition(STUNMessage(parsing: copy)?.mappedAddress(in: copy) == address)
    }
    if let message = STUNMessage(parsing: bytes.span) {
        // A challenge of any realm and nonce has a request that is a message.
        let response = TURN.response(bytes, to: message.transaction, method: message.method)
        if case .refused(_, let challenge?) = response {
            let credentials = (user: Array("user".utf8), challenge: challenge, key: OpenKey(password: []))
            let request = TURN.allocate(message.transaction, credentials)
            precondition(STUNMessage(parsing: request.span)?.method == TURN.allocate)
        }
    }
    for datagram in [bytes, withFingerprint(bytes)] {
        answer.count = 0
        let received = agent.receive(datagram.span, from: remote, to: local, now: .zero, answer: &answer)
        guard case .check(let found, _) = received else {
            precondition(answer.count == 0)
            if case .elsewhere(let place) = received { precondition(place == 0 || place == 2) }
            continue
        }
        precondition(found == session && answer.count > 0 && answer.count <= PacketBuffer.capacity)
        precondition(STUNMessage(parsing: answer.bytes.span.extracting(0..<answer.count)) != nil)
    }
    precondition(agent.pairCount <= 1)
    if agent.nextTimeout != .never { precondition(agent.nextExpired(now: agent.nextTimeout) == session) }
    precondition(agent.nextTimeout == .never)
}

/// The bytes with the FINGERPRINT that they should have, if they end with one.
func withFingerprint(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.count >= 28, bytes[(bytes.count - 8)...].starts(with: [0x80, 0x28, 0, 4]) else { return bytes }
    var packet = packet(bytes.dropLast(8))
    packet.addFingerprint()
    packet.bytes.replaceSubrange(2..<4, with: bytes[2..<4])
    return Array(packet.bytes[..<packet.count])
}

private final class OpenKey: STUNKey {
    init(password: [UInt8]) {}
    func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity {
        STUNIntegrity([UInt8](repeating: 0, count: STUNIntegrity.length).span)
    }
}

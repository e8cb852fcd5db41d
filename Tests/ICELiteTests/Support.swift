import ICELite
import RTP
import TestSupport

/// HMAC-SHA1 in plain Swift (RFC 2104, FIPS 180-4).
final class PlainKey: STUNKey {
    private let password: [UInt8]

    init(password: [UInt8]) { self.password = password }

    func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity {
        var message = (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) }
        for index in bytes.indices { message.append(bytes[index]) }
        let key = password + [UInt8](repeating: 0, count: 64 - password.count)
        let inner = Self.sha1(key.map { $0 ^ 0x36 } + message)
        return STUNIntegrity(Self.sha1(key.map { $0 ^ 0x5c } + inner).span)
    }

    static func sha1(_ message: [UInt8]) -> [UInt8] {
        var padded = message + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        padded += (0..<8).map { UInt8(truncatingIfNeeded: (message.count * 8) >> (56 - 8 * $0)) }
        var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0]
        for block in stride(from: 0, to: padded.count, by: 64) {
            var words = (0..<16).map { word in
                (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(padded[block + 4 * word + $1]) }
            }
            for t in 16..<80 {
                let mixed = words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16]
                words.append(mixed << 1 | mixed >> 31)
            }
            var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
            for t in 0..<80 {
                let (f, k): (UInt32, UInt32) =
                    switch t {
                    case ..<20: (b & c | ~b & d, 0x5a82_7999)
                    case ..<40: (b ^ c ^ d, 0x6ed9_eba1)
                    case ..<60: (b & c | b & d | c & d, 0x8f1b_bcdc)
                    default: (b ^ c ^ d, 0xca62_c1d6)
                    }
                let next = (a << 5 | a >> 27) &+ f &+ e &+ k &+ words[t]
                (e, d, c, b, a) = (d, c, b << 30 | b >> 2, a, next)
            }
            for (place, value) in [a, b, c, d, e].enumerated() { state[place] &+= value }
        }
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
    }
}

/// A keyed sum for tests with many messages. It is not secure, but two messages of a test do not have the same one by chance.
final class QuickKey: STUNKey {
    private let seed: UInt64
    private(set) var sums = 0

    init(password: [UInt8]) { seed = Self.mix(password.span, from: 0) }

    func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity {
        sums += 1
        let mixed = Self.mix(bytes, from: seed ^ UInt64(word))
        let whole = (0..<20).map { UInt8(truncatingIfNeeded: mixed >> (8 * ($0 % 8))) }
        return STUNIntegrity(whole.span)
    }

    private static func mix(_ bytes: Span<UInt8>, from seed: UInt64) -> UInt64 {
        var mixed = seed ^ 0xcbf2_9ce4_8422_2325
        for index in bytes.indices { mixed = (mixed ^ UInt64(bytes[index])) &* 0x0100_0000_01b3 }
        return mixed
    }
}

/// The bytes of a text of hexadecimal digits.
func bytes(_ text: String) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

/// A Binding request, part by part.
struct Check<Key: STUNKey> {
    var transaction = STUNTransaction(high: 1, low: 2)
    var username = "serv:peer"
    var password: String? = Check.password
    var priority: UInt32? = 100
    var nominates = false
    var role: STUNMessage.Role? = .controlling(7)
    /// Types of further attributes, each with four bytes.
    var others: [UInt16] = []
    var hasFingerprint = true

    static var password: String { "0123456789012345678901" }

    var datagram: [UInt8] {
        var packet = PacketBuffer()
        packet.beginSTUN(.request, transaction)
        let value = packet.addAttribute(STUNAttribute.username, count: username.utf8.count)
        for (index, byte) in username.utf8.enumerated() { packet.bytes[value + index] = byte }
        if let priority { packet.setUInt32(priority, at: packet.addAttribute(STUNAttribute.priority, count: 4)) }
        if nominates { _ = packet.addAttribute(STUNAttribute.useCandidate, count: 0) }
        switch role {
        case .controlling(let tieBreaker):
            packet.setUInt64(tieBreaker, at: packet.addAttribute(STUNAttribute.iceControlling, count: 8))
        case .controlled(let tieBreaker):
            packet.setUInt64(tieBreaker, at: packet.addAttribute(STUNAttribute.iceControlled, count: 8))
        case nil: break
        }
        for type in others { packet.setUInt32(0, at: packet.addAttribute(type, count: 4)) }
        if let password { packet.addIntegrity(with: Key(password: Array(password.utf8))) }
        if hasFingerprint { packet.addFingerprint() }
        return Array(packet.bytes[..<packet.count])
    }
}

typealias QuickCheck = Check<QuickKey>

/// An agent with its clock and the answer of the last datagram.
final class Server<Key: STUNKey> {
    static var address: TransportAddress { TransportAddress(ipv4: 0xc633_6401, port: 3478) }

    var agent = ICELiteAgent<Key>()
    var now = MonotonicTime.zero + .seconds(1000)
    private var buffer = PacketBuffer()
    /// The response to the last datagram. Empty without one.
    private(set) var answer: [UInt8] = []

    func receive(
        _ datagram: [UInt8], from remote: TransportAddress, to local: TransportAddress = Server.address
    ) -> ICEReceived {
        buffer.count = 0
        let received = agent.receive(datagram.span, from: remote, to: local, now: now, answer: &buffer)
        answer = Array(buffer.bytes[..<buffer.count])
        return received
    }

    func receive(
        _ check: Check<Key>, from remote: TransportAddress, to local: TransportAddress = Server.address
    ) -> ICEReceived { receive(check.datagram, from: remote, to: local) }

    /// The remote address of a session's path.
    func remote(of session: ICESessionID) -> TransportAddress? { agent.path(of: session)?.pair.remote }
}

typealias QuickServer = Server<QuickKey>

extension Server {
    /// Adds a session whose checks are those of `Check`.
    func add(_ ufrag: String = "serv", password: String = Check<Key>.password) -> ICESessionID? {
        ICECredentials(ufrag: ufrag, password: password).flatMap { agent.add($0) }
    }

    func restart(_ session: ICESessionID, _ ufrag: String, password: String = Check<Key>.password) -> Bool {
        ICECredentials(ufrag: ufrag, password: password).map { agent.restart(session, $0) } ?? false
    }

    func expired() -> ICESessionID? { agent.nextExpired(now: now) }
}

/// The message that the bytes are. (The macros of Testing accept no span.)
func parse(_ bytes: [UInt8]) -> STUNMessage? { STUNMessage(parsing: bytes.span) }

/// The mapped address and the error code of a response (RFC 8489, sections 14.2 and 14.8).
struct Response {
    private(set) var mappedAddress: TransportAddress?
    private(set) var errorCode: Int?

    /// Nil for bytes that are no STUN message.
    init?(_ bytes: [UInt8]) {
        guard parse(bytes) != nil else { return nil }
        var rest = bytes[20...]
        func number(_ range: Range<Int>) -> Int {
            rest.dropFirst(range.lowerBound).prefix(range.count).reduce(0) { $0 << 8 | Int($1) }
        }
        // The address is XORed with the cookie and the transaction.
        let mask = Array(bytes[4..<20])
        while rest.count >= 4 {
            let (type, length) = (number(0..<2), number(2..<4))
            let value = Array(rest.dropFirst(4).prefix(length))
            rest = rest.dropFirst(4 + (length + 3) & ~3)
            switch type {
            case 0x0009: errorCode = Int(value[2]) * 100 + Int(value[3])
            case 0x0020:
                let port = UInt16(value[2] ^ mask[0]) << 8 | UInt16(value[3] ^ mask[1])
                let address = zip(value[4...], mask).map { $0 ^ $1 }
                func part(_ range: Range<Int>) -> UInt64 { address[range].reduce(0) { $0 << 8 | UInt64($1) } }
                mappedAddress =
                    address.count == 4
                    ? TransportAddress(ipv4: UInt32(part(0..<4)), port: port)
                    : TransportAddress(ipv6: part(0..<8), part(8..<16), port: port)
            default: break
            }
        }
    }
}

extension STUNMessage {
    func isSigned(with key: some STUNKey, in bytes: [UInt8]) -> Bool { isSigned(with: key, in: bytes.span) }
    func hasFingerprint(in bytes: [UInt8]) -> Bool { hasFingerprint(in: bytes.span) }
}

/// A peer's address: 192.0.2.`host`.
func peer(_ host: UInt8, port: UInt16 = 5000) -> TransportAddress {
    TransportAddress(ipv4: 0xc000_0200 | UInt32(host), port: port)
}

/// A DTLS datagram's beginning.
let hello: [UInt8] = [22, 254, 253]

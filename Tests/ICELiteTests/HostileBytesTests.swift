import ICELite
import RTP
import Testing
import TestSupport

@Suite struct HostileBytesTests {
    private static let messages = [Vector.request, Vector.response4, Vector.response6]

    /// Whether a datagram passes for one signed with the password of the vectors.
    private func isAuthentic(_ datagram: [UInt8], _ key: PlainKey) -> Bool {
        guard let message = parse(datagram) else { return false }
        return message.hasFingerprint(in: datagram) && message.isSigned(with: key, in: datagram)
    }

    private let key = PlainKey(password: Array(Vector.password.utf8))

    @Test(arguments: messages)
    func `no truncation and no extension of a message parses`(message: [UInt8]) {
        #expect(isAuthentic(message, key))
        for length in 0..<message.count { #expect(parse(Array(message[..<length])) == nil) }
        for length in 1...8 { #expect(parse((message + [UInt8](repeating: 0, count: length))) == nil) }
    }

    @Test(arguments: messages)
    func `no message with one other byte is authentic`(message: [UInt8]) {
        for place in message.indices {
            for change in UInt8(1)...255 {
                var damaged = message
                damaged[place] ^= change
                #expect(!isAuthentic(damaged, key))
            }
        }
    }

    @Test func `one other byte with a correct fingerprint gets no answer`() {
        let server = Server<PlainKey>()
        _ = server.add()
        let check = Check<PlainKey>(nominates: true).datagram
        var parsed = 0
        for place in 0..<(check.count - 8) {
            for change in [UInt8(1), 0x80, 0xff] {
                var damaged = check
                damaged[place] ^= change
                guard let message = resealed(damaged) else { continue }
                parsed += 1
                guard case .ignored = server.receive(message, from: peer(1)) else {
                    Issue.record("byte \(place) changed by \(change) is accepted")
                    continue
                }
                #expect(server.answer.isEmpty)
            }
        }
        // Of most bytes, all changes are values that a message may have.
        #expect(parsed > 200)
        #expect(server.agent.count(of: .unauthenticated) > 100)
        #expect(server.agent.pairCount == 0)
        guard case .check = server.receive(check, from: peer(1)) else {
            Issue.record("the unchanged check is refused")
            return
        }
    }

    /// The message with the fingerprint that it should have. Nil if it does not parse without one.
    private func resealed(_ message: [UInt8]) -> [UInt8]? {
        var packet = PacketBuffer()
        _ = packet.assign(message.dropLast(8))
        packet.addFingerprint()
        // The header's length is the writer's, not the one that was changed.
        packet.bytes[2] = message[2]
        packet.bytes[3] = message[3]
        let whole = Array(packet.bytes[..<packet.count])
        return parse(whole) == nil ? nil : whole
    }

    @Test(arguments: [0, 1, 3, 4, 5, 19, 20, 24, 60, 1000, 0x7fff, 0xfffc, 0xffff])
    func `attributes and messages with false lengths are refused`(lie: Int) {
        let server = QuickServer()
        _ = server.add()
        let honest = QuickCheck(nominates: true).datagram
        // The header's length, and that of each attribute.
        var places = [2]
        var offset = 20
        while offset < honest.count {
            places.append(offset + 2)
            offset += (4 + Int(honest[offset + 2]) << 8 + Int(honest[offset + 3]) + 3) & ~3
        }
        #expect(places.count > 5)
        for place in places {
            var message = honest
            guard Int(message[place]) << 8 | Int(message[place + 1]) != lie else { continue }
            message[place] = UInt8(lie >> 8)
            message[place + 1] = UInt8(lie & 0xff)
            // Also with a correct fingerprint, which undoes a lie about the fingerprint itself.
            for candidate in [message, resealed(message)] {
                guard let candidate, candidate != honest else { continue }
                guard case .ignored = server.receive(candidate, from: peer(1)) else {
                    Issue.record("\(lie) at \(place) is accepted")
                    continue
                }
                #expect(server.answer.isEmpty)
            }
        }
        #expect(server.agent.pairCount == 0)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `random bytes behind a plausible header get no answer`(seed: UInt64) {
        var random = Seeded(seed)
        let server = QuickServer()
        _ = server.add()
        for _ in 0..<500 {
            let words = Int.random(in: 0...40, using: &random)
            var message = [UInt8](QuickCheck().datagram[..<20])
            message[3] = UInt8(4 * words)
            for _ in 0..<words {
                let type = [6, 8, 9, 0x20, 0x24, 0x25].randomElement(using: &random) ?? 0
                let isAttribute = Bool.random(using: &random)
                message +=
                    isAttribute
                    ? [0, UInt8(type), 0, .random(in: 0...32, using: &random)]
                    : (0..<4).map { _ in .random(in: 0...255, using: &random) }
            }
            guard case .ignored = server.receive(message, from: peer(1)) else {
                Issue.record("\(message) is accepted")
                return
            }
            #expect(server.answer.isEmpty)
        }
    }

    @Test func `an unauthenticated request gets no answer, so none is longer than its question`() {
        let server = QuickServer()
        let session = server.add()
        var strangers = [QuickCheck](repeating: QuickCheck(nominates: true), count: 6)
        strangers[0].password = nil
        strangers[1].password = "9876543210987654321098"
        strangers[2].username = "none:peer"
        strangers[3].username = "serv"
        strangers[4].hasFingerprint = false
        strangers[5].password = nil
        strangers[5].others = [0x7001]
        for stranger in strangers {
            guard case .ignored = server.receive(stranger, from: peer(1)) else {
                Issue.record("\(stranger) is accepted")
                continue
            }
            #expect(server.answer.isEmpty)
        }
        #expect(server.agent.pairCount == 0 && session.flatMap { server.agent.path(of: $0) } == nil)
        #expect(server.receive(hello, from: peer(1)) == .ignored(.unknownAddress))
        #expect(server.agent.count(of: .unauthenticated) == 3 && server.agent.count(of: .unknownUfrag) == 2)
        #expect(server.agent.count(of: .badFingerprint) == 1 && server.agent.count(of: .unknownAddress) == 1)
    }

    @Test func `an error response is shorter than the request that it refuses`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        let refused = [
            QuickCheck(role: .controlled(1)), QuickCheck(nominates: true, role: nil), QuickCheck(others: [0x7001]),
            QuickCheck(others: (0..<230).map { 0x7000 + $0 }),
        ]
        for check in refused {
            #expect(server.receive(check, from: peer(1)) == .check(session, selected: false))
            #expect(parse(server.answer)?.kind == .error)
            #expect(server.answer.count <= check.datagram.count)
        }
        #expect(server.agent.pairCount == 0)
    }

    @Test func `a datagram longer than a packet is refused`() {
        let server = QuickServer()
        _ = server.add()
        let long = QuickCheck(others: [UInt16](repeating: 0x7001, count: 230)).datagram
        #expect(server.receive(long, from: peer(1)) != .ignored(.malformed))
        var huge = [UInt8](repeating: 0, count: 60_000)
        huge.replaceSubrange(0..<20, with: long[..<20])
        huge[2] = UInt8((60_000 - 20) >> 8)
        huge[3] = UInt8((60_000 - 20) & 0xff)
        #expect(parse(huge) != nil)
        #expect(server.receive(huge, from: peer(1)) == .ignored(.malformed))
    }

    @Test func `a datagram is taken by its first byte`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        _ = server.receive(QuickCheck(), from: peer(1))
        for first in 0...255 {
            let expected: ICEReceived =
                switch first {
                case 0...3: .ignored(.malformed)
                case 20...63, 128...191: .media(session)
                default: .ignored(.unknownProtocol)
                }
            #expect(server.receive([UInt8(first), 0, 0], from: peer(1)) == expected)
        }
        #expect(server.receive([], from: peer(1)) == .ignored(.unknownProtocol))
    }

    @Test func `responses, indications and other methods get no answer`() throws {
        let server = QuickServer()
        _ = server.add()
        for first in 0...3 as ClosedRange<UInt8> {
            for second in [UInt8(0x01), 0x03, 0x11, 0x13] where (first, second) != (0, 1) {
                var datagram = QuickCheck().datagram
                datagram[0] = first
                datagram[1] = second
                #expect(server.receive(datagram, from: peer(1)) == .ignored(.notCheck))
            }
        }
    }
}

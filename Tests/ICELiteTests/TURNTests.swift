import RTP
import Testing
import TestSupport

@testable import ICELite

/// No signature at all.
private final class NoKey: STUNKey {
    init(password: [UInt8]) {}

    func sum(of word: UInt32, and bytes: Span<UInt8>) -> STUNIntegrity {
        STUNIntegrity([UInt8](repeating: 0, count: 20).span)
    }
}

struct TURNTests {
    private let transaction = STUNTransaction(high: 1, low: 2)

    private func response(
        _ kind: STUNMessage.Kind, _ attributes: [(UInt16, [UInt8])], method: UInt16 = TURN.allocate
    ) -> [UInt8] {
        var packet = PacketBuffer()
        packet.beginSTUN(kind, method: method, transaction)
        for (type, bytes) in attributes {
            let value = packet.addAttribute(type, count: bytes.count)
            for (index, byte) in bytes.enumerated() { packet.bytes[value + index] = byte }
        }
        return Array(packet.bytes[..<packet.count])
    }

    @Test func `a refusal with realm and nonce is a challenge, and the next request answers it`() {
        let refusal = response(.error, [(0x0009, [0, 0, 4, 1]), (0x0014, Array("realm".utf8)), (0x0015, [7, 8])])
        let challenge = TURN.Challenge(realm: Array("realm".utf8), nonce: [7, 8])
        #expect(TURN.response(refusal, to: transaction, method: TURN.allocate) == .refused(code: 401, challenge))
        let request = TURN.allocate(
            transaction, (user: Array("ada".utf8), challenge: challenge, key: NoKey(password: [])))
        let message = STUNMessage(parsing: request.span)
        #expect(message?.method == TURN.allocate)
        #expect(message?.username.map { Array(request[$0]) } == Array("ada".utf8))
    }

    @Test func `the relayed address of a success is read, and messages of others are ignored`() {
        let value: [UInt8] = [0, 1, 0x80 ^ 0x21, 1 ^ 0x12, 127 ^ 0x21, 0x12, 0xa4, 1 ^ 0x42]
        let success = response(.success, [(0x0016, value)])
        let address = TransportAddress(ipv4: 0x7f00_0001, port: 0x8001)
        #expect(TURN.response(success, to: transaction, method: TURN.allocate) == .allocated(address))
        #expect(TURN.response(success, to: STUNTransaction(high: 1, low: 3), method: TURN.allocate) == nil)
        #expect(TURN.response(success, to: transaction, method: TURN.refresh) == nil)
        #expect(
            TURN.response(response(.success, []), to: transaction, method: TURN.allocate) == .done)
    }

    @Test func `a realm, nonce and user of the greatest lengths fit into a request, and longer ones are no challenge`()
    {
        let longest = [UInt8](repeating: 65, count: TURN.textLimit)
        let refusal = response(.error, [(0x0009, [0, 0, 4, 1]), (0x0014, longest), (0x0015, longest)])
        guard case .refused(401, let challenge?) = TURN.response(refusal, to: transaction, method: TURN.allocate) else {
            Issue.record("no challenge")
            return
        }
        #expect(
            TURN.allocate(transaction, (user: longest, challenge: challenge, key: NoKey(password: []))).count > 1536)
        let longer = response(.error, [(0x0009, [0, 0, 4, 1]), (0x0014, longest + [65]), (0x0015, [1])])
        #expect(TURN.response(longer, to: transaction, method: TURN.allocate) == .refused(code: 401, nil))
    }

    @Test func `hostile responses are refused without a trap`() {
        var random = Seeded(7)
        let good = response(.error, [(0x0009, [0, 0, 4, 1]), (0x0014, [1, 2, 3]), (0x0015, [4, 5, 6, 7, 8])])
        for _ in 0..<20_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            if Bool.random(using: &random) { bytes.removeLast(Int.random(in: 0...bytes.count, using: &random)) }
            _ = TURN.response(bytes, to: transaction, method: TURN.allocate)
        }
    }
}

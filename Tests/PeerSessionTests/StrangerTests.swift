import PeerSession
import RTP
import Testing

/// SSRCs that were not announced.
@Suite struct StrangerTests {
    private static let mostContexts = 128

    private func rtp(_ ssrc: UInt32, number: UInt16 = 1, mid: String? = nil, type: UInt8 = 96) -> [UInt8] {
        var bytes: [UInt8] = [mid == nil ? 0x80 : 0x90, type, UInt8(number >> 8), UInt8(number & 0xff), 0, 0, 0, 9]
        for shift: UInt32 in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: ssrc >> shift)) }
        if let mid { bytes += [0xbe, 0xde, 0, 1, 0x41] + Array(mid.utf8) + [0] }
        return bytes + [1, 2, 3, 4]
    }

    private func call() -> (call: Call, receiver: ReceiverID) {
        let call = Call()
        call.secure()
        let receiver = call.b.addReceiver(
            ReceiverConfiguration(
                ssrc: SSRC(5), retransmissionSSRC: SSRC(6), mid: "v0", extensions: HeaderExtensionIDs(mid: 4),
                clockRate: 90000, payloadTypes: [96], retransmissionPayloadTypes: [96: 97], nack: false))
        return (call, receiver)
    }

    private func cipher(_ call: Call) throws -> CipherDouble {
        try #require(call.b.srtp as? CheckedSRTP<CipherDouble>).engine
    }

    @Test("Packets of 100,000 unknown SSRCs are dropped before decryption and leave no state")
    func strangers() throws {
        let (call, _) = call()
        let cipher = try cipher(call)
        let before = cipher.unprotections
        var bytes = rtp(0) + [UInt8](repeating: 0, count: 8)
        for ssrc: UInt32 in 100..<100_100 {
            for index in 0..<4 { bytes[8 + index] = UInt8(truncatingIfNeeded: ssrc >> UInt32(24 - 8 * index)) }
            call.deliver(bytes, to: .b)
        }
        #expect(call.b.statistics.dropped.unknownSSRC == 100_000)
        #expect(cipher.unprotections == before)
        #expect(cipher.contexts.isEmpty)
    }

    @Test("A mid binds a new SSRC only after its packet was authenticated")
    func forgedMid() throws {
        let (call, receiver) = call()
        call.deliver(rtp(77, mid: "v0") + [UInt8](repeating: 0, count: 8), to: .b)
        #expect(call.b.statistics.dropped.authenticationFailures == 1)
        #expect(call.b.statistics(of: receiver)?.ssrc == SSRC(5))
        try Voice(call, to: .b).send(rtp(77, mid: "v0"))
        #expect(call.b.statistics(of: receiver)?.ssrc == SSRC(77))
    }

    @Test("A mid behind a kilobyte of padding is not searched for")
    func longExtension() throws {
        let (call, _) = call()
        let mid = rtp(77, mid: "v0")
        let words = 300
        var bytes = Array(mid[..<14]) + [UInt8(words >> 8), UInt8(words & 0xff)]
        bytes += [UInt8](repeating: 0, count: 4 * words - 4) + mid[16..<20] + [1, 2, 3, 4]
        call.deliver(bytes + [UInt8](repeating: 0, count: 8), to: .b)
        #expect(call.b.statistics.dropped.unknownSSRC == 1)
        #expect(call.b.statistics.dropped.authenticationFailures == 0)
    }

    @Test("A receiver bound to many SSRCs keeps at most 128 contexts, and always those in use")
    func rebinding() throws {
        let (call, receiver) = call()
        let cipher = try cipher(call)
        let voice = try Voice(call, to: .b)
        var delivered = 0
        call.onMedia = { _, _, _, _ in delivered += 1 }
        // An empty RTX packet, which only creates a context that stays in use.
        voice.send(rtp(6, type: 97))
        for ssrc: UInt32 in 1000..<1300 { voice.send(rtp(ssrc, mid: "v0")) }
        #expect(delivered == 300)
        #expect(cipher.contexts.count == Self.mostContexts)
        #expect(cipher.contexts.isSuperset(of: [SSRC(6), SSRC(1299)]))
        // The previous one is kept while there is room: its recorded packets remain replays.
        #expect(cipher.contexts.contains(SSRC(1298)))
        #expect(call.b.statistics(of: receiver)?.ssrc == SSRC(1299))
    }

    @Test("Reports of 1000 SSRCs keep at most 128 contexts, and always those of streams")
    func reporters() throws {
        let (call, _) = call()
        let cipher = try cipher(call)
        let voice = try Voice(call, to: .b)
        voice.send(rtp(5))
        for ssrc: UInt32 in 1000..<2000 { voice.say([.receiverReport(SSRC(ssrc), [])]) }
        #expect(cipher.contexts.count == Self.mostContexts)
        #expect(cipher.contexts.contains(SSRC(5)))
        #expect(call.b.statistics.dropped.authenticationFailures == 0)
    }

    @Test("If all 128 contexts are in use, another SSRC gets none")
    func full() throws {
        let (call, _) = call()
        let cipher = try cipher(call)
        let voice = try Voice(call, to: .b)
        for number: UInt32 in 0..<128 {
            _ = call.b.addReceiver(
                ReceiverConfiguration(
                    ssrc: SSRC(200 + number), mid: "a", clockRate: 48000, payloadTypes: [111],
                    nack: false))
            voice.send(rtp(200 + number, type: 111))
        }
        #expect(cipher.contexts.count == Self.mostContexts)
        voice.send(rtp(5))
        voice.say([.receiverReport(SSRC(1), [])])
        #expect(cipher.contexts.count == Self.mostContexts)
        #expect(call.b.statistics.dropped.unknownSSRC == 2)
    }

    @Test("All layers of sixteen videos, and the retransmissions of each, are decrypted")
    func manyLayers() throws {
        let (call, _) = call()
        let cipher = try cipher(call)
        let voice = try Voice(call, to: .b)
        var receivers: [ReceiverID] = []
        for number: UInt32 in 0..<48 {
            receivers.append(
                call.b.addReceiver(
                    ReceiverConfiguration(
                        ssrc: SSRC(200 + number), retransmissionSSRC: SSRC(300 + number), mid: "a", clockRate: 90000,
                        payloadTypes: [96], retransmissionPayloadTypes: [96: 97], nack: false)))
            // A repair without a payload only creates a context.
            voice.send(rtp(300 + number, type: 97))
        }
        for number: UInt32 in 0..<48 { voice.send(rtp(200 + number)) }
        #expect(receivers.allSatisfy { call.b.statistics(of: $0)?.packets == 1 })
        #expect(cipher.contexts.count == 96 && call.b.statistics.dropped.unknownSSRC == 0)
    }
}

import PeerSession
import RTP
import Testing

@Suite struct EncryptionLedgerTests {
    private func packet(_ number: UInt16, ssrc: UInt32 = 1) -> PacketBuffer {
        var packet = PacketBuffer()
        let fits = packet.assignRTP(
            payloadType: 96, sequenceNumber: SequenceNumber(number), timestamp: RTPTimestamp(0), ssrc: SSRC(ssrc),
            payload: [1])
        precondition(fits)
        return packet
    }

    @Test("The ledger accepts each index once, in any order and across the wrap of sequence numbers")
    func indexes() {
        var ledger = EncryptionLedger()
        var admitted: [Bool] = []
        for number: UInt16 in [65_530, 65_529, 2, 65_535, 65_529, 2, 40, 65_530] {
            admitted.append(ledger.record(packet(number)))
        }
        #expect(admitted == [true, true, true, true, false, false, true, false])
        let other = ledger.record(packet(2, ssrc: 2))
        #expect(other, "each SSRC has indexes of its own")
    }

    @Test("The ledger accepts a sequence number again in the next cycle")
    func cycles() {
        var ledger = EncryptionLedger()
        var refused = 0
        for index in 0..<200_000 {
            let isNew = ledger.record(packet(UInt16(truncatingIfNeeded: index)))
            if !isNew { refused += 1 }
        }
        #expect(refused == 0)
        let isNew = ledger.record(packet(UInt16(truncatingIfNeeded: 199_990)))
        #expect(!isNew)
    }

    @Test("The check of all session tests detects a session that encrypts two packets under one number")
    func deliberateDouble() {
        let call = Call()
        call.secure()
        let sender = call.a.addSender(SenderConfiguration(ssrc: SSRC(7), clockRate: 90000), now: call.now)
        let first = packet(10)
        guard let header = RTPHeader(parsing: first) else { return }
        call.a.send(first, header: header, rewrite: Rewrite(keeping: header), via: sender, now: call.now)
        call.a.send(first, header: header, rewrite: Rewrite(keeping: header), via: sender, now: call.now)
        withKnownIssue {
            var batch = DatagramBatch()
            call.a.drain(into: &batch)
        }
    }
}

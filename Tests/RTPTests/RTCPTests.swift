import RTP
import Testing
import TestSupport

@Suite struct RTCPTests {
    static let block = ReportBlock(
        ssrc: SSRC(7), fractionLost: 12, cumulativeLost: -3, extendedHighestSequence: 0x0001_ffff, jitter: 99,
        lastSenderReport: 0x1234_5678, delaySinceLastSenderReport: 65536)
    static let packets: [RTCPPacket] = [
        .senderReport(
            SenderInformation(
                ssrc: SSRC(1), ntp: NTPTime(rawValue: 0x0102_0304_0506_0708), rtp: RTPTimestamp(.max), packetCount: 5,
                octetCount: 6000), [block, block]),
        .cname(SSRC(1), "someone@somewhere"),
        .receiverReport(SSRC(1), [block]),
        .nack(sender: SSRC(1), media: SSRC(2), lost: [65530, 65535, 0, 3, 500].map { SequenceNumber($0) }),
        .pictureLoss(sender: SSRC(1), media: SSRC(2)),
        .fullIntraRequest(sender: SSRC(1), requests: [.init(ssrc: SSRC(2), command: 9)]),
        .bye([SSRC(1), SSRC(2)]),
    ]

    private func compound(_ packets: [RTCPPacket]) -> PacketBuffer {
        var compound = PacketBuffer()
        for packet in packets { check(packet.append(to: &compound)) }
        return compound
    }

    @Test("A compound of all types survives writing and reading")
    func roundTrip() {
        #expect(RTCPPacket.parse(compound(Self.packets)) == Self.packets)
    }

    @Test("A compound is read behind what an array has, and a refused one is reported")
    func appended() {
        var read: [RTCPPacket] = [.bye([SSRC(9)])]
        #expect(RTCPPacket.parse(compound(Self.packets), into: &read))
        #expect(read == [.bye([SSRC(9)])] + Self.packets)
        let whole = compound(Self.packets).contents
        #expect(!RTCPPacket.parse(packet(Array(whole.dropLast())), into: &read))
    }

    @Test("CNAMEs of every length up to 255 survive writing and reading", arguments: [0, 1, 2, 3, 4, 5, 17, 254, 255])
    func cnameLengths(length: Int) {
        let packets: [RTCPPacket] = [.cname(SSRC(1), String(repeating: "x", count: length)), .bye([SSRC(3)])]
        let written = compound(packets)
        #expect(written.count % 4 == 0)
        #expect(RTCPPacket.parse(written) == packets)
    }

    @Test("A compound cut within a packet is refused as a whole")
    func truncated() {
        let whole = compound(Self.packets).contents
        var boundaries: Set<Int> = []
        var offset = 0
        for one in Self.packets {
            offset += compound([one]).count
            boundaries.insert(offset)
        }
        for length in 0..<whole.count {
            let read = RTCPPacket.parse(packet(Array(whole[..<length])))
            #expect((read != nil) == boundaries.contains(length), "at \(length)")
        }
    }

    @Test("Unknown packet types are skipped: REMB, transport-cc, and others")
    func unknown() {
        let remb: [UInt8] = [0x8f, 206, 0, 3] + [UInt8](repeating: 1, count: 12)
        let twcc: [UInt8] = [0x8f, 205, 0, 2] + [UInt8](repeating: 1, count: 8)
        let other: [UInt8] = [0x80, 209, 0, 1, 0, 0, 0, 1]
        let known = compound([.pictureLoss(sender: SSRC(1), media: SSRC(2))]).contents
        #expect(
            RTCPPacket.parse(packet(remb + twcc + other + known)) == [
                .unknown(packetType: 206, format: 15), .unknown(packetType: 205, format: 15),
                .unknown(packetType: 209, format: 0), .pictureLoss(sender: SSRC(1), media: SSRC(2)),
            ])
    }

    @Test("A NACK names its packets in masks of 16, across the wrap, without duplicates")
    func nackMasks() {
        let lost = (65520...65535).map { SequenceNumber($0) } + (0...20).map { SequenceNumber($0) }
        let written = compound([.nack(sender: SSRC(1), media: SSRC(2), lost: lost)])
        #expect(written.count == 12 + 3 * 4)
        #expect(RTCPPacket.parse(written) == [.nack(sender: SSRC(1), media: SSRC(2), lost: lost)])
    }

    @Test("S17: a NACK bomb is read up to the limit")
    func nackBomb() throws {
        var bytes: [UInt8] = [0x81, 205, 0x01, 0xf2, 0, 0, 0, 1, 0, 0, 0, 2]
        for number in 0..<UInt16(496) {
            bytes += [UInt8(number * 17 >> 8), UInt8(truncatingIfNeeded: number * 17), 255, 255]
        }
        let read = try value(RTCPPacket.parse(packet(bytes)))
        guard case .nack(_, _, let lost) = read[0] else {
            Issue.record("It was read as something else.")
            return
        }
        #expect(lost.count == RTCPPacket.maximumLost)
    }

    @Test("A packet that does not fit into a compound is omitted, and the compound stays valid")
    func fitting() {
        var compound = PacketBuffer()
        let report = RTCPPacket.receiverReport(SSRC(1), [ReportBlock](repeating: Self.block, count: 20))
        check(report.append(to: &compound, limit: 1000))
        check(!report.append(to: &compound, limit: 900))
        #expect(RTCPPacket.parse(compound) == [report])
    }

    @Test("200,000 mutated compounds never trap")
    func fuzz() {
        var random = Seeded(9)
        let whole = compound(Self.packets).contents
        var accepted = 0
        for _ in 0..<200_000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random) / 8 * 8)
            if RTCPPacket.parse(packet(bytes)) != nil { accepted += 1 }
        }
        #expect(accepted > 1000)
    }
}

import RTP
import TestSupport
import Testing

/// A packet of Opus with one frame of 20 ms (RFC 6716, section 3.1).
private func opus(_ mark: UInt8, length: Int = 10) -> [UInt8] {
    [0xf8] + [UInt8](repeating: mark, count: length - 1)
}

/// A packet of RED with number 100 and timestamp 48000, written by RFC 2198, section 3.
private func red(
    _ copies: [(distance: UInt32, payload: [UInt8])], primary: [UInt8], type: UInt8 = 111, padding: UInt8 = 0
) -> PacketBuffer {
    var payload: [UInt8] = []
    for copy in copies {
        let fields = copy.distance << 10 | UInt32(copy.payload.count)
        payload += [0x80 | 111] + [16, 8, 0].map { UInt8(truncatingIfNeeded: fields >> $0) }
    }
    payload += [type] + copies.flatMap(\.payload) + primary
    if padding > 0 { payload += [UInt8](repeating: 0, count: Int(padding) - 1) + [padding] }
    var packet = PacketBuffer()
    precondition(
        packet.assignRTP(
            payloadType: 63, sequenceNumber: SequenceNumber(100), timestamp: RTPTimestamp(48000), ssrc: SSRC(7),
            marker: true, payload: payload))
    if padding > 0 { packet.bytes[0] |= 0x20 }
    return packet
}

@Suite struct RedundancyTests {
    /// The copies by number and timestamp with their bytes, and the packet that is left.
    private func read(
        _ packet: consuming PacketBuffer
    ) throws -> (copies: [(number: UInt16, timestamp: UInt32, bytes: [UInt8])], primary: [UInt8], header: RTPHeader) {
        var packet = packet
        let header = try value(RTPHeader(parsing: packet))
        var copies: [Redundancy.Copy] = []
        let payload = try value(Redundancy.read(packet, header: header, payloadType: 111, copies: &copies))
        let read = copies.map { copy in
            (copy.sequenceNumber.rawValue, copy.timestamp.rawValue, Array(packet.bytes[copy.payload]))
        }
        let primary = Redundancy.unwrap(&packet, header: header, payload: payload, payloadType: 111)
        #expect(RTPHeader(parsing: packet) == primary)
        return (read, Array(packet.bytes[primary.payloadOffset..<primary.payloadEnd]), primary)
    }

    @Test func `copies get the numbers before that of their packet, the newest first`() throws {
        let (copies, primary, header) = try read(
            red([(1920, opus(1)), (960, opus(2, length: 300))], primary: opus(3), padding: 4))
        #expect(copies.map(\.number) == [99, 98] && copies.map(\.timestamp) == [47040, 46080])
        #expect(copies.map(\.bytes) == [opus(2, length: 300), opus(1)])
        #expect(primary == opus(3) && header.payloadType == 111 && header.marker && !header.hasPadding)
    }

    @Test func `a packet without copies is an ordinary one`() throws {
        let (copies, primary, _) = try read(red([], primary: opus(3)))
        #expect(copies.isEmpty && primary == opus(3))
    }

    /// Others may have been left out between, or the encoder was silent (DTX).
    @Test func `a copy that does not end where the next one begins has no certain number`() throws {
        let (copies, primary, _) = try read(red([(2880, opus(1)), (960, opus(2))], primary: opus(3)))
        #expect(copies.map(\.number) == [99])
        #expect(primary == opus(3))
        #expect(try read(red([(1920, opus(2))], primary: opus(3))).copies.isEmpty)
    }

    @Test func `packets whose lengths overrun, or with another codec, are refused`() throws {
        let good = red([(960, opus(1))], primary: opus(3))
        func isRefused(_ bytes: [UInt8]) throws -> Bool {
            let packet = packet(bytes)
            let header = try value(RTPHeader(parsing: packet))
            var copies: [Redundancy.Copy] = []
            return Redundancy.read(packet, header: header, payloadType: 111, copies: &copies) == nil
        }
        let bytes = good.contents
        // Headers of five bytes, and a copy of ten.
        for length in 12..<(12 + 5 + 10) { #expect(try isRefused(Array(bytes[..<length])), "\(length)") }
        #expect(try !isRefused(Array(bytes[..<27])))
        #expect(try isRefused(red([], primary: opus(3), type: 0).contents))
        #expect(try isRefused(red((0..<20).map { (UInt32($0) * 960, opus(1)) }, primary: opus(3)).contents))
    }

    @Test func `no bytes of a hostile peer overrun`() throws {
        var random = Seeded(5)
        for _ in 0..<20_000 {
            let length = Int.random(in: 0...64, using: &random)
            var payload = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            // Most are headers, so that reading goes on.
            for index in payload.indices where index % 4 == 0 && Bool.random(using: &random) { payload[index] = 0xef }
            if let last = payload.indices.randomElement(using: &random) { payload[last] = 111 }
            var packet = PacketBuffer()
            precondition(
                packet.assignRTP(
                    payloadType: 63, sequenceNumber: SequenceNumber(0), timestamp: RTPTimestamp(0), ssrc: SSRC(7),
                    payload: payload))
            let header = try value(RTPHeader(parsing: packet))
            var copies: [Redundancy.Copy] = []
            guard let primary = Redundancy.read(packet, header: header, payloadType: 111, copies: &copies) else {
                continue
            }
            #expect(primary.lowerBound >= header.payloadOffset && primary.upperBound == packet.count)
            for copy in copies {
                #expect(
                    copy.payload.lowerBound >= header.payloadOffset && copy.payload.upperBound <= primary.lowerBound)
            }
            let left = Redundancy.unwrap(&packet, header: header, payload: primary, payloadType: 111)
            #expect(left.payloadEnd == packet.count)
        }
    }
}

@Suite struct ExpectedLossTests {
    @Test func `copies and the encoder's loss follow steady reports within seconds`() {
        var loss = ExpectedLoss()
        #expect(loss.percent == nil && loss.copies == 0)
        for _ in 0..<5 { loss.report(0, packets: 50) }
        #expect(loss.percent == 2 && loss.copies == 0)
        for _ in 0..<4 { loss.report(0.1, packets: 50) }
        #expect(loss.copies == 1 && loss.percent == 10)
        for _ in 0..<6 { loss.report(0.1, packets: 50) }
        #expect(loss.copies == 2)
        for _ in 0..<8 { loss.report(0, packets: 50) }
        #expect(loss.copies == 1)
        for _ in 0..<40 { loss.report(0, packets: 50) }
        #expect(loss.copies == 0 && loss.percent == 2)
    }

    @Test func `a report counts by the packets that it covers`() throws {
        var loss = ExpectedLoss()
        loss.report(1, packets: 0)
        #expect(loss.share == nil && loss.percent == nil)
        // One of two packets says little, also at first.
        loss.report(0.5, packets: 2)
        #expect(try #require(loss.share) < 0.03 && loss.copies == 0)
        for _ in 0..<20 { loss.report(0, packets: 50) }
        for _ in 0..<3 { loss.report(1, packets: 1) }
        #expect(try #require(loss.share) < 0.03 && loss.copies == 0)
        // Silence does not show that the path is clean.
        for _ in 0..<10 { loss.report(0.1, packets: 50) }
        for _ in 0..<40 { loss.report(0, packets: 0) }
        #expect(loss.copies == 2)
    }

    /// 50 packets a second, and a report for each: at 4 % loss, their shares vary from 0 to 12 %.
    @Test func `reports that vary around a loss change little`() {
        var (loss, random) = (ExpectedLoss(), Seeded(7))
        var (copies, percents) = ([Int](), [Int?]())
        for _ in 0..<600 {
            let lost = (0..<50).count { _ in Double.random(in: 0..<1, using: &random) < 0.04 }
            loss.report(Double(lost) / 50, packets: 50)
            copies.append(loss.copies)
            percents.append(loss.percent)
        }
        #expect(zip(copies, copies.dropFirst()).count { $0 != $1 } < 20)
        #expect(zip(percents, percents.dropFirst()).count { $0 != $1 } < 30)
        #expect(copies.dropFirst(10).count { $0 == 1 } > 500)
    }
}

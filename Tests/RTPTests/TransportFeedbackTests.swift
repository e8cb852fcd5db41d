import RTP
import TestSupport
import Testing

@Suite struct TransportFeedbackTests {
    private func written(_ feedback: TransportFeedback) -> PacketBuffer {
        var compound = PacketBuffer()
        check(RTCPPacket.transportFeedback(feedback).append(to: &compound))
        return compound
    }

    private func feedback(_ arrivals: [(Int, Int)], count: UInt16? = nil) -> TransportFeedback {
        TransportFeedback(
            sender: SSRC(1), media: SSRC(2), base: SequenceNumber(65530),
            count: count ?? UInt16((arrivals.last?.0 ?? 0) + 1), referenceTime: 0xff_fffe, number: 255,
            arrivals: arrivals.map { .init(offset: UInt16($0.0), ticks: Int16($0.1)) })
    }

    private func read(_ bytes: [UInt8]) -> TransportFeedback? {
        guard case .transportFeedback(let feedback)? = RTCPPacket.parse(packet(bytes))?.first else { return nil }
        return feedback
    }

    @Test("Feedback is written as the draft describes it")
    func layout() {
        let bytes = written(feedback([(0, 4), (1, 300), (3, -1)])).contents
        #expect(
            bytes == [0x8f, 205, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xfa, 0, 4, 0xff, 0xff, 0xfe, 255]
                // A vector of two bits: small, large, missing, large.
                + [0b1101_1000, 0b1000_0000] + [4, 1, 44, 255, 255, 0])
    }

    @Test("Single runs, vectors of one bit and of two bits survive writing and reading")
    func shapes() {
        let shapes: [[(Int, Int)]] = [
            [(0, 0)], (0..<200).map { ($0, 255) }, (0..<200).map { ($0, 256) }, (0..<50).map { ($0 * 2, 1) },
            (0..<50).map { ($0 * 2, $0 % 3 == 0 ? -5 : 5) }, [(0, 1), (8000, 2), (20000, -3)], [(32766, 1)],
            (0..<13).map { ($0, 1) } + [(13, 1000)], [(0, Int(Int16.min)), (1, Int(Int16.max))],
        ]
        for shape in shapes {
            let original = feedback(shape)
            #expect(RTCPPacket.parse(written(original)) == [.transportFeedback(original)])
        }
        let lost = feedback([], count: 9000)
        #expect(RTCPPacket.parse(written(lost)) == [.transportFeedback(lost)])
    }

    @Test("Random feedback survives writing and reading, and a long run takes two bytes")
    func random() {
        var random = Seeded(7)
        for _ in 0..<300 {
            var arrivals: [(Int, Int)] = []
            var offset = 0
            for _ in 0..<Int.random(in: 1...150, using: &random) {
                arrivals.append((offset, Int.random(in: 0...9, using: &random) == 0 ? -400 : 90))
                offset += Int.random(in: 0...3, using: &random) == 0 ? Int.random(in: 1...40, using: &random) : 1
            }
            let original = feedback(arrivals)
            #expect(RTCPPacket.parse(written(original)) == [.transportFeedback(original)])
        }
        #expect(written(feedback([(0, 1), (8191, 1)])).count == 28)
    }

    @Test("A feedback whose chunks or times overrun, or that uses the reserved status, is skipped")
    func malformed() {
        let whole = written(feedback((0..<40).map { ($0, $0 % 5 == 0 ? 600 : 3) })).contents
        for words in 1..<(whole.count / 4) {
            var cut = Array(whole[..<(4 * words)])
            cut[3] = UInt8(words - 1)
            #expect(read(cut) == nil, "at \(words) words")
        }
        let head = Array(whole[..<12])
        // Reserved status in a run and in a vector; no packets; runs of nothing.
        for tail: [UInt8] in [
            [0, 0, 0, 1, 0, 0, 0, 0, 0x60, 1, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0, 0xf0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            var bytes = head + tail
            bytes[3] = UInt8(bytes.count / 4 - 1)
            #expect(read(bytes) == nil)
        }
    }

    @Test("A datagram that claims 65535 losses takes no memory for them")
    func claims() throws {
        var bytes = Array(written(feedback([(0, 1)])).contents[..<12]) + [0, 0, 255, 255, 0, 0, 0, 0]
        for _ in 0..<8 { bytes += [0x1f, 0xff] }
        bytes += [0, 7, 0, 0]
        bytes[3] = UInt8(bytes.count / 4 - 1)
        let feedback = try value(read(bytes))
        #expect(feedback.count == 65535)
        #expect(feedback.arrivals.isEmpty)
    }

    @Test("Random bytes never trap")
    func fuzz() {
        var random = Seeded(3)
        for _ in 0..<5000 {
            let words = Int.random(in: 4...12, using: &random)
            var bytes: [UInt8] = (0..<(4 * words + 4)).map { _ in UInt8.random(in: 0...255, using: &random) }
            (bytes[0], bytes[1], bytes[2], bytes[3]) = (0x8f, 205, 0, UInt8(words))
            if Bool.random(using: &random) { bytes[14] = 0 }
            if let feedback = read(bytes) { #expect(feedback.arrivals.count <= bytes.count) }
        }
    }

    @Test(
        "REMB survives writing and reading with 18 significant bits",
        arguments: [0, 1, 250_000, 262_143, 1_000_000_000, UInt64.max])
    func receiverEstimate(rate: UInt64) throws {
        let estimate = ReceiverEstimate(sender: SSRC(1), bitsPerSecond: rate, sources: [SSRC(8), SSRC(9)])
        var compound = PacketBuffer()
        check(RTCPPacket.receiverEstimate(estimate).append(to: &compound))
        guard case .receiverEstimate(let read)? = RTCPPacket.parse(compound)?.first else {
            Issue.record("It was not read.")
            return
        }
        #expect(read.sources == estimate.sources)
        #expect(read.bitsPerSecond <= rate)
        #expect(rate - read.bitsPerSecond <= rate >> 17)
    }

    @Test("A REMB that names more sources than it has is skipped")
    func truncatedEstimate() {
        let bytes: [UInt8] = [0x8f, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0x52, 0x45, 0x4d, 0x42, 1, 0xff, 0, 0]
        #expect(RTCPPacket.parse(packet(bytes)) == [.unknown(packetType: 206, format: 15)])
    }

    @Test("The transport-wide number is read from its header extension")
    func headerExtension() throws {
        var packet = packet(fullPacket)
        TransportSequence.write(id: 3, SequenceNumber(0xbbcc), at: 24, to: &packet)
        let header = try value(RTPHeader(parsing: packet))
        #expect(TransportSequence.read(id: 3, header, in: packet) == SequenceNumber(0xbbcc))
        #expect(TransportSequence.read(id: 9, header, in: packet) == nil)
    }
}

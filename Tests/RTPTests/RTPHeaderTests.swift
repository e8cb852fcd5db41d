import RTP
import Testing
import TestSupport

@Suite struct RTPHeaderTests {
    @Test("Every field of a complete packet is read")
    func reading() throws {
        let full = packet(fullPacket)
        let header = try value(RTPHeader(parsing: full))
        #expect(header.marker)
        #expect(header.payloadType == 96)
        #expect(header.sequenceNumber == SequenceNumber(0x1234))
        #expect(header.timestamp == RTPTimestamp(0x0102_0304))
        #expect(header.ssrc == SSRC(0xcafe_babe))
        #expect(full.contents[header.payloadOffset..<header.payloadEnd] == [9, 8, 7, 6, 5])
    }

    @Test("One-byte header extensions are found, past padding")
    func oneByteExtensions() throws {
        let full = packet(fullPacket)
        let header = try value(RTPHeader(parsing: full))
        let third = try value(header.headerExtension(id: 3, in: full))
        #expect(Array(full.contents[third]) == [0xaa, 0xbb, 0xcc])
        let fourth = try value(header.headerExtension(id: 4, in: full))
        #expect(Array(full.contents[fourth]) == [0x30, 0x31])
        #expect(header.headerExtension(id: 5, in: full) == nil)
        #expect(header.headerExtension(id: 0, in: full) == nil)
    }

    @Test("Two-byte header extensions are found, empty and long ones")
    func twoByteExtensions() throws {
        let long = [UInt8](repeating: 7, count: 20)
        let elements: [UInt8] = [1, 0, 0, 200, 20] + long + [0, 0, 0]
        let bytes: [UInt8] = [0x90, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0x10, 0x00, 0, 7] + elements + [42]
        let two = packet(bytes)
        let header = try value(RTPHeader(parsing: two))
        #expect(header.headerExtension(id: 1, in: two)?.isEmpty == true)
        #expect(header.headerExtension(id: 200, in: two).map { Array(two.contents[$0]) } == long)
        #expect(header.payloadLength == 1)
    }

    @Test("Writing parsed values changes nothing")
    func identity() throws {
        var copy = packet(fullPacket)
        let header = try value(RTPHeader(parsing: copy))
        for index in 1..<12 { copy.bytes[index] = 0 }
        header.write(into: &copy)
        #expect(copy.contents == fullPacket)
    }

    @Test("S8: a packet truncated anywhere in its header is refused")
    func truncated() {
        for length in 0..<32 { #expect(RTPHeader(parsingProtected: packet(Array(fullPacket[..<length]))) == nil) }
        #expect(RTPHeader(parsingProtected: packet(Array(fullPacket[..<32]))) != nil)
    }

    @Test("S8: CSRCs, extension and padding that overrun are refused")
    func overruns() {
        var csrcs = fullPacket
        csrcs[0] |= 0x0f
        #expect(RTPHeader(parsing: packet(csrcs)) == nil)
        var length = fullPacket
        length[23] = 10
        #expect(RTPHeader(parsing: packet(length)) == nil)
        var padding = fullPacket
        padding[padding.count - 1] = 10
        #expect(RTPHeader(parsing: packet(padding)) == nil)
        padding[padding.count - 1] = 0
        #expect(RTPHeader(parsing: packet(padding)) == nil)
        padding[padding.count - 1] = 9
        #expect(RTPHeader(parsing: packet(padding))?.payloadLength == 0)
        var version = fullPacket
        version[0] = version[0] & 0x3f | 0x40
        #expect(RTPHeader(parsing: packet(version)) == nil)
    }

    @Test("S8: an extension element that overruns its block hides only the following ones")
    func elementOverrun() throws {
        var bytes = fullPacket
        bytes[29] = 0x4f
        let hostile = packet(bytes)
        let header = try value(RTPHeader(parsing: hostile))
        #expect(header.headerExtension(id: 4, in: hostile) == nil)
        #expect(header.headerExtension(id: 3, in: hostile) != nil)
    }

    @Test("S8: 200,000 mutated and random packets never trap, and accepted ones write back identically")
    func fuzz() {
        var random = Seeded(8)
        var accepted = 0
        for round in 0..<200_000 {
            var bytes = fullPacket
            if round % 4 == 0 {
                bytes = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
            } else {
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                bytes.removeLast(Int.random(in: 0..<8, using: &random))
            }
            var hostile = packet(bytes)
            guard let header = RTPHeader(parsing: hostile) else { continue }
            accepted += 1
            for id in UInt8(0)...16 {
                if let range = header.headerExtension(id: id, in: hostile), range.upperBound > header.payloadOffset {
                    Issue.record("An element of \(bytes) lies outside of the header.")
                }
            }
            _ = VP8PayloadDescriptor(parsing: hostile, header: header)
            _ = H264Payload.isKeyframeStart(hostile, header: header)
            header.write(into: &hostile)
            if hostile.contents != bytes { Issue.record("Writing \(bytes) changed it.") }
            _ = Retransmission.unwrap(&hostile, header: header, payloadType: 96, ssrc: SSRC(1))
        }
        #expect(accepted > 10_000)
    }
}

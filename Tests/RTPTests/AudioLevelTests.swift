import RTP
import TestSupport
import Testing

/// A packet with a header extension.
private func packet(profile: [UInt8], _ elements: [UInt8]) -> PacketBuffer {
    packet(
        [0x90, 111, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3] + profile + [0, UInt8(elements.count / 4)] + elements + [1, 2, 3])
}

private func level(_ packet: borrowing PacketBuffer, id: UInt8 = 6) -> AudioLevel? {
    guard var header = RTPHeader(parsing: packet) else { return nil }
    header.resolveExtensions(HeaderExtensionIDs(captureTime: 5, audioLevel: id), in: packet)
    return header.audioLevel
}

@Suite struct AudioLevelTests {
    @Test func `the layout is that of RFC 6464 in both forms`() {
        // Figure 1: the id, a length of 0 for one byte, the bit for voice, seven bits of level.
        check(
            level(packet(profile: [0xbe, 0xde], [0x60, 0x80 | 42, 0, 0]))
                == AudioLevel(negativeDecibels: 42, isVoice: true))
        check(level(packet(profile: [0xbe, 0xde], [0x60, 127, 0, 0])) == AudioLevel(negativeDecibels: 127))
        // Figure 2: the id, a length of 1, the same byte, padding.
        check(level(packet(profile: [0x10, 0], [6, 1, 42, 0])) == AudioLevel(negativeDecibels: 42))
        check(level(packet(profile: [0xbe, 0xde], [0x60, 42, 0, 0]), id: 7) == nil)
    }

    @Test func `a value of another length is no level, and none reads beyond its packet`() {
        for length in (0...20) where length != 1 {
            var elements = [6, UInt8(length)] + [UInt8](repeating: 9, count: length)
            while elements.count % 4 != 0 { elements.append(0) }
            check(level(packet(profile: [0x10, 0], elements)) == nil, "\(length)")
            guard (1...16).contains(length) else { continue }
            elements = [0x60 | UInt8(length - 1)] + [UInt8](repeating: 9, count: length)
            while elements.count % 4 != 0 { elements.append(0) }
            check(level(packet(profile: [0xbe, 0xde], elements)) == nil, "\(length)")
        }
        // The last byte of the extension begins an element.
        check(level(packet(profile: [0xbe, 0xde], [0, 0, 0, 0x60])) == nil)
        check(level(packet(profile: [0x10, 0], [0, 0, 6, 1])) == nil)
        var random = Seeded(6)
        for _ in 0..<2000 {
            let words = Int.random(in: 0...8, using: &random)
            let elements = (0..<4 * words).map { _ in UInt8.random(in: 0...255, using: &random) }
            for profile in [[0xbe, 0xde], [0x10, 0], [0x10, 0x0f]] as [[UInt8]] {
                let level = level(packet(profile: profile, elements))
                check(level.map { $0.negativeDecibels <= 127 } ?? true)
            }
        }
    }

    @Test func `a level that is written is read again, beside a capture time or alone`() throws {
        for byte in 0...255 {
            let voice = AudioLevel(negativeDecibels: UInt8(byte & 0x7f), isVoice: byte > 127)
            var written = packet([0x80, 111, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3])
            var writer = HeaderExtensionWriter()
            var bytes = written.bytes.mutableSpan
            let time = AbsoluteCaptureTime(NTPTime(rawValue: 77), clockOffset: nil)
            if byte % 2 == 0 { writer.write(time, as: 5, to: &bytes) }
            writer.write(voice, as: 6, to: &bytes)
            let length = writer.finish(in: &bytes)
            #expect(length == 12 + HeaderExtensionWriter.length(ofElements: 2 + (byte % 2 == 0 ? 9 : 0)))
            written.count = length
            #expect(level(written) == voice)
        }
    }

    @Test func `decibels are rounded, and kept within the range`() {
        let decibels: [Double] = [0, -0.4, -19.6, -126.4, -200, 3]
        #expect(decibels.map { AudioLevel(decibels: $0).negativeDecibels } == [0, 0, 20, 126, 127, 0])
        #expect(AudioLevel(decibels: -.infinity).negativeDecibels == 127)
        #expect(AudioLevel(negativeDecibels: 200).negativeDecibels == 127)
    }

    @Test func `a store keeps levels and capture times beside payloads, also when it grows`() {
        let store = PacketStore()
        var random = Seeded(7)
        var expected: [(time: AbsoluteCaptureTime?, level: AudioLevel?, length: Int)] = []
        for index in 0..<3000 {
            let length = Int.random(in: 0...400, using: &random)
            let time =
                index % 3 == 0
                ? AbsoluteCaptureTime(
                    NTPTime(rawValue: random.next()), clockOffset: index % 2 == 0 ? Int64(index) : nil) : nil
            let level = index % 5 < 3 ? AudioLevel(negativeDecibels: UInt8(index % 128), isVoice: index % 7 == 0) : nil
            var one = PacketBuffer()
            for place in 0..<length { one.bytes[place] = UInt8(truncatingIfNeeded: index) }
            _ = store.add(
                one, 0..<length, timestamp: RTPTimestamp(0), marker: false, captureTime: time, level: level,
                now: .zero + .milliseconds(Int64(index)))
            expected.append((time, level, length))
            for wanted in [index, index - 1, index - 60, index - 500] where wanted >= 0 && store.contains(wanted) {
                #expect(store.captureTime(of: wanted) == expected[wanted].time)
                #expect(store.level(of: wanted) == expected[wanted].level)
                let isIntact = store.withPayload(wanted) { payload in
                    payload.count == expected[wanted].length
                        && payload.indices.allSatisfy { payload[$0] == UInt8(truncatingIfNeeded: wanted) }
                }
                #expect(isIntact)
            }
        }
        #expect(store.level(of: 0) == nil && store.level(of: 3000) == nil)
    }
}

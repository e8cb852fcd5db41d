import RTP
import Testing
import TestSupport

/// A packet whose header extension is made of the given words.
private func packet(profile: [UInt8], _ elements: [UInt8]) -> PacketBuffer {
    packet(
        [0x90, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3] + profile + [0, UInt8(elements.count / 4)] + elements + [1, 2, 3])
}

private func captureTime(_ packet: borrowing PacketBuffer, id: UInt8 = 5) -> AbsoluteCaptureTime? {
    guard var header = RTPHeader(parsing: packet) else { return nil }
    header.resolveExtensions(HeaderExtensionIDs(captureTime: id), in: packet)
    return header.captureTime
}

@Suite struct HeaderExtensionTests {
    private let moment = NTPTime(rawValue: 0xe5f1_2233_4455_6677)

    @Test(arguments: [nil, 0, -1, 0x0123_4567_89ab_cdef, Int64.min, Int64.max], [false, true])
    func `a capture time that is written is read again, beside a mid or alone`(offset: Int64?, hasMid: Bool) throws {
        var written = packet([0x80, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3])
        var writer = HeaderExtensionWriter()
        var bytes = written.bytes.mutableSpan
        if hasMid {
            let place = writer.element(4, length: 2, in: &bytes)
            (bytes[place], bytes[place + 1]) = (0x76, 0x30)
        }
        let time = AbsoluteCaptureTime(moment, clockOffset: offset)
        writer.write(time, as: 5, to: &bytes)
        let length = writer.finish(in: &bytes)
        #expect(length == 12 + HeaderExtensionWriter.length(ofElements: (offset == nil ? 9 : 17) + (hasMid ? 3 : 0)))
        written.count = length
        let header = try value(RTPHeader(parsing: written))
        #expect(header.payloadLength == 0)
        #expect(captureTime(written) == time)
        #expect(captureTime(written, id: 6) == nil)
        let mid = header.headerExtension(id: 4, in: written).map { Array(written.bytes[$0]) }
        #expect(mid == (hasMid ? Array("v0".utf8) : nil))
    }

    @Test func `a header without elements has no extension`() throws {
        var written = packet([0x80, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3])
        var writer = HeaderExtensionWriter()
        var bytes = written.bytes.mutableSpan
        let length = writer.finish(in: &bytes)
        #expect(length == 12)
        check(written.contents == [0x80, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3])
        #expect(HeaderExtensionWriter.length(ofElements: 0) == 0)
    }

    @Test func `the layout is that of the specification`() {
        let seconds: [UInt8] = [0xe5, 0xf1, 0x22, 0x33]
        let fraction: [UInt8] = [0x44, 0x55, 0x66, 0x77]
        let short = packet(profile: [0xbe, 0xde], [0x57] + seconds + fraction + [0, 0, 0])
        check(captureTime(short) == AbsoluteCaptureTime(moment, clockOffset: nil))
        // Minus half a second.
        let offset: [UInt8] = [0xff, 0xff, 0xff, 0xff, 0x80, 0, 0, 0]
        let long = packet(profile: [0xbe, 0xde], [0x5f] + seconds + fraction + offset + [0, 0, 0])
        check(captureTime(long) == AbsoluteCaptureTime(moment, clockOffset: -0x8000_0000))
        let twoByte = packet(profile: [0x10, 0], [5, 16] + seconds + fraction + offset + [0, 0])
        check(captureTime(twoByte) == AbsoluteCaptureTime(moment, clockOffset: -0x8000_0000))
    }

    @Test func `a value of another length is no capture time`() {
        for length in 0...20 where length != 8 && length != 16 {
            var elements = [5, UInt8(length)] + [UInt8](repeating: 7, count: length)
            while elements.count % 4 != 0 { elements.append(0) }
            check(captureTime(packet(profile: [0x10, 0], elements)) == nil, "\(length)")
            guard (1...16).contains(length) else { continue }
            elements = [0x50 | UInt8(length - 1)] + [UInt8](repeating: 7, count: length)
            while elements.count % 4 != 0 { elements.append(0) }
            check(captureTime(packet(profile: [0xbe, 0xde], elements)) == nil, "\(length)")
        }
        // The element claims more than the extension has.
        check(captureTime(packet(profile: [0xbe, 0xde], [0x5f] + [UInt8](repeating: 7, count: 11))) == nil)
        check(captureTime(packet(profile: [0x10, 0], [5, 16] + [UInt8](repeating: 7, count: 10))) == nil)
    }

    @Test func `an answer accepts known extensions, each once and under an id of its own`() {
        let uri = HeaderExtension.Kind.captureTime.rawValue
        let offered = [
            HeaderExtension(id: 1, uri: "urn:ietf:params:rtp-hdrext:toffset"), HeaderExtension(id: 4, .mid),
            HeaderExtension(id: 4, .captureTime), HeaderExtension(id: 7, uri: uri), HeaderExtension(id: 9, uri: uri),
        ]
        #expect(offered.acceptable == [HeaderExtension(id: 4, .mid), HeaderExtension(id: 7, .captureTime)])
        #expect(HeaderExtensionIDs(offered) == HeaderExtensionIDs(mid: 4, captureTime: 7))
        #expect(HeaderExtensionIDs([]) == HeaderExtensionIDs())
    }

    @Test func `an answer has the direction that the offer allows`() {
        let directions: [MediaDirection] = [.sendrecv, .sendonly, .recvonly, .inactive]
        let answered = directions.map { [HeaderExtension(id: 3, .mid, $0)].acceptable.map(\.direction) }
        #expect(answered == [[.sendrecv], [.recvonly], [.sendonly], []])
        let all = directions.enumerated().map { HeaderExtension(id: UInt8($0 + 1), uri: "urn:x", $1) }
        #expect(all.sent.map(\.id) == [1, 2])
        #expect(all.received.map(\.id) == [1, 3])
    }

    @Test func `a store keeps capture times beside payloads of any length, also when it grows`() {
        let store = PacketStore()
        var random = Seeded(5)
        var expected: [(time: AbsoluteCaptureTime?, length: Int)] = []
        for index in 0..<4000 {
            let length = Int.random(in: 0...1400, using: &random)
            let time: AbsoluteCaptureTime? =
                switch index % 3 {
                case 0: nil
                case 1: AbsoluteCaptureTime(NTPTime(rawValue: random.next()), clockOffset: nil)
                default: AbsoluteCaptureTime(NTPTime(rawValue: random.next()), clockOffset: Int64(index))
                }
            var one = PacketBuffer()
            for place in 0..<length { one.bytes[place] = UInt8(truncatingIfNeeded: index) }
            let added = store.add(
                one, 0..<length, timestamp: RTPTimestamp(0), marker: false, captureTime: time,
                now: .zero + .milliseconds(Int64(index)))
            #expect(added == index)
            expected.append((time, length))
            for back in [0, 1, 50, 400] where index >= back {
                let wanted = index - back
                guard store.contains(wanted) else { continue }
                #expect(store.captureTime(of: wanted) == expected[wanted].time)
                let isIntact = store.withPayload(wanted) { payload in
                    payload.count == expected[wanted].length
                        && payload.indices.allSatisfy { payload[$0] == UInt8(truncatingIfNeeded: wanted) }
                }
                #expect(isIntact)
            }
        }
        #expect(store.contains(3999 - 400))
        #expect(store.captureTime(of: 0) == nil && store.captureTimeLength(of: 4000) == 0)
    }
}

@Suite struct CaptureTimeScheduleTests {
    private let start = NTPTime(unixNanoseconds: 1_763_697_600_000_000_000)

    private func frames(_ count: Int, keyframes: Set<Int> = [], error: (Int) -> TimeInterval = { _ in .zero }) -> [Int]
    {
        var schedule = CaptureTimeSchedule(clockRate: 90000)
        return (0..<count).filter { frame in
            let time = start.advanced(by: .milliseconds(Int64(frame) * 40) + error(frame))
            return schedule.includes(
                time, rtp: RTPTimestamp(4_294_000_000).advanced(by: frame * 3600),
                beginsStream: keyframes.contains(frame))
        }
    }

    @Test func `the first frame, keyframes and one frame a second carry their times`() {
        #expect(frames(101) == [0, 25, 50, 75, 100])
        #expect(frames(60, keyframes: [10, 12]) == [0, 10, 12, 37])
    }

    @Test func `a frame carries its time if receivers would compute another one`() {
        #expect(frames(20) { $0 >= 7 ? .milliseconds(-3) : .zero } == [0, 7])
        #expect(frames(20) { $0 >= 7 ? .microseconds(900) : .zero } == [0])
        #expect(frames(20) { $0 >= 7 ? .seconds(-3600) : .zero } == [0, 7])
    }
}

import RTP
import Testing
import TestSupport

@Suite struct NumbersTests {
    @Test("Sequence numbers compare across the wrap")
    func sequenceWrap() {
        #expect(SequenceNumber(1).isNewer(than: SequenceNumber(65535)))
        #expect(!SequenceNumber(65535).isNewer(than: SequenceNumber(1)))
        #expect(SequenceNumber(2).distance(from: SequenceNumber(65534)) == 4)
        #expect(SequenceNumber(65534).distance(from: SequenceNumber(2)) == -4)
        #expect(SequenceNumber(65535).advanced(by: 1) == SequenceNumber(0))
        #expect(SequenceNumber(0).advanced(by: -1) == SequenceNumber(65535))
    }

    @Test("Timestamps compare across the wrap")
    func timestampWrap() {
        #expect(RTPTimestamp(5).isNewer(than: RTPTimestamp(.max - 5)))
        #expect(RTPTimestamp(5).distance(from: RTPTimestamp(.max)) == 6)
        #expect(RTPTimestamp(.max).advanced(by: 1) == RTPTimestamp(0))
    }

    @Test("Unwrapping counts over many wraps, with numbers out of order")
    func unwrapping() {
        var unwrapper = SequenceUnwrapper()
        let start = unwrapper.unwrap(SequenceNumber(65000))
        var random = Seeded(1)
        for step in 0..<300_000 {
            let late = Int.random(in: 0...100, using: &random)
            let value = max(0, step - late)
            #expect(unwrapper.unwrap(SequenceNumber(65000).advanced(by: value)) == start + value)
        }
    }

    @Test("A packet older than the first one stays positive")
    func olderThanFirst() {
        var unwrapper = SequenceUnwrapper()
        #expect(unwrapper.unwrap(SequenceNumber(3)) == 65539)
        #expect(unwrapper.unwrap(SequenceNumber(65530)) == 65530)
    }

    @Test("NTP time converts to Unix time and back within a nanosecond")
    func ntp() {
        let time = NTPTime(unixNanoseconds: 1_763_697_600_123_456_789)
        #expect(time.rawValue >> 32 == 1_763_697_600 + 2_208_988_800)
        #expect(abs(Int64(time.unixNanoseconds) - 1_763_697_600_123_456_789) <= 1)
        let later = time.advanced(by: .milliseconds(1500))
        #expect(abs(Int64(later.unixNanoseconds) - 1_763_697_601_623_456_789) <= 2)
        #expect(later.advanced(by: .milliseconds(-1500)) == time)
    }

    @Test("A sender's clock extrapolates over an hour without drift, and back")
    func senderClock() {
        let clock = SenderClock(
            ntp: NTPTime(unixNanoseconds: 1_763_697_600_000_000_000), rtp: RTPTimestamp(.max - 1000),
            at: MonotonicTime(nanoseconds: 5_000_000_000), clockRate: 90000)
        let later = clock.extrapolated(to: clock.at + .seconds(3600))
        #expect(later.rtp.distance(from: clock.rtp) == 3600 * 90000)
        #expect(later.ntp.unixNanoseconds == 1_763_701_200_000_000_000)
        #expect(clock.extrapolated(to: clock.at + .milliseconds(-100)).rtp.distance(from: clock.rtp) == -9000)
    }

    @Test("Times add and subtract; never stays never")
    func monotonic() {
        let time = MonotonicTime(nanoseconds: 100) + .milliseconds(1)
        #expect(time.nanoseconds == 1_000_100)
        #expect(MonotonicTime.zero - time == TimeInterval(nanoseconds: -1_000_100))
        #expect(MonotonicTime.never + .seconds(1) == .never)
    }
}

@Suite struct PacketBufferTests {
    @Test("A buffer accepts bytes and other buffers, and refuses more than its capacity")
    func assigning() {
        var buffer = PacketBuffer()
        let bytes = (0..<4000).map { UInt8(truncatingIfNeeded: $0) }
        check(buffer.assign(bytes, 10..<1500))
        #expect(buffer.contents == Array(bytes[10..<1500]))
        check(!buffer.assign(bytes, 0..<2049))
        check(!buffer.assign(bytes))
        #expect(buffer.contents == Array(bytes[10..<1500]))
        var copy = PacketBuffer()
        copy.assign(copying: buffer)
        #expect(copy.contents == buffer.contents)
        check(buffer.assign(bytes, 5..<5))
        #expect(buffer.contents.isEmpty)
    }

    @Test("Numbers are in network order")
    func numbers() {
        var buffer = PacketBuffer()
        buffer.setUInt64(0x0102_0304_0506_0708, at: 3)
        #expect(Array(buffer.bytes[3..<11]) == [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(buffer.uint64(at: 3) == 0x0102_0304_0506_0708)
        #expect(buffer.uint24(at: 4) == 0x02_0304)
        #expect(buffer.uint16(at: 9) == 0x0708)
    }

    @Test("A batch returns its datagrams and is empty after removal")
    func batch() {
        var batch = DatagramBatch()
        batch.append([1, 2])
        batch.append([UInt8]())
        batch.append(packet([3]))
        #expect(batch.count == 3)
        #expect(Array(batch[0]) == [1, 2] && batch[1].isEmpty && Array(batch[2]) == [3])
        batch.removeAll()
        #expect(batch.isEmpty)
    }

    @Test("Fingerprints survive writing and reading; others are refused")
    func fingerprints() {
        let fingerprint = Fingerprint("SHA-256 0a:FF")
        #expect(fingerprint?.description == "sha-256 0A:FF")
        for text in ["", "sha-256", "sha-256 0", "sha-256 0A:", "sha-256 0A FF", "sha-256 +A"] {
            #expect(Fingerprint(text) == nil, "\(text)")
        }
    }
}

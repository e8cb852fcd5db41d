import RTP
import Testing

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

    @Test("Unwrapping counts on over many wraps, with numbers out of order")
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

    @Test("NTP time goes to Unix time and back within a nanosecond")
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

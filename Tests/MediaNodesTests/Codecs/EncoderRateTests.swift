import MediaGraph
import Testing

@testable import MediaNodes

struct EncoderRateTests {
    private let start = MediaTime(nanoseconds: 1_000_000_000_000)

    private func after(_ milliseconds: Int) -> MediaTime { start + .milliseconds(milliseconds) }

    /// An encoder that wishes 900 kbit/s.
    private func rate() -> EncoderRate {
        var rate = EncoderRate()
        rate.setWish(900_000)
        return rate
    }

    /// The frames that are encoded, of so many at 25 frames/s with so many bytes each.
    private func encoded(_ rate: inout EncoderRate, of frames: Int, bytes: Int = 0, from first: Int = 0) -> Int {
        var count = 0
        for index in first..<(first + frames) where rate.admitsFrame(at: UInt64(index) * 40_000_000) {
            count += 1
            rate.encoded(bytes: bytes)
        }
        return count
    }

    @Test func `without a limit, or with a higher one, the encoder has its wish`() {
        var rate = rate()
        #expect(rate.bitrate == 900_000 && rate.limit == nil)
        rate.setLimit(2_000_000, by: 1, now: start)
        #expect(rate.bitrate == 900_000)
        #expect(encoded(&rate, of: 30) == 30)
    }

    @Test func `the bitrate falls first, with all frames`() {
        var rate = rate()
        rate.setLimit(300_000, by: 1, now: start)
        #expect(rate.bitrate == 300_000)
        #expect(encoded(&rate, of: 30) == 30)
    }

    @Test(arguments: [(225_000, 30), (150_000, 20), (100_000, 13), (50_000, 7), (5000, 7)])
    func `below a third of the wish, fewer frames keep their bits`(limit: Int, frames: Int) {
        var rate = rate()
        rate.setLimit(limit, by: 1, now: start)
        #expect(rate.bitrate == limit)
        #expect(abs(encoded(&rate, of: 40) - frames) <= 1)
        // Motion stays even.
        var gaps: [Int] = []
        var gap = 0
        for index in 40..<160 {
            gap += 1
            if encoded(&rate, of: 1, from: index) == 1 {
                gaps.append(gap)
                gap = 0
            }
        }
        let inner = gaps.dropFirst()
        #expect((inner.max() ?? 0) - (inner.min() ?? 0) <= 1)
    }

    @Test func `an encoder that exceeds its limit skips frames`() {
        var rate = rate()
        rate.setLimit(400_000, by: 1, now: start)
        // 25 frames/s of 5 kB are twice the tolerance. A keyframe of five frames alone skips none.
        rate.encoded(bytes: 10_000)
        #expect(encoded(&rate, of: 3, bytes: 1800) == 3)
        let count = encoded(&rate, of: 250, bytes: 5000, from: 3)
        #expect((123...135).contains(count), "\(count)")
        // One frame of 100 kB costs half a second.
        rate.encoded(bytes: 100_000)
        #expect((11...15).contains(encoded(&rate, of: 25, bytes: 1000, from: 253)))
        // Within the limit again, it skips none.
        #expect(encoded(&rate, of: 250, bytes: 1900, from: 278) == 250)
    }

    @Test func `nothing is encoded while nothing can be sent`() {
        var rate = rate()
        rate.setLimit(0, by: 1, now: start)
        #expect(encoded(&rate, of: 100) == 0)
        rate.setLimit(500_000, by: 1, now: after(600))
        #expect(encoded(&rate, of: 1) == 1)
    }

    @Test func `the rate falls at once, and rises half a second later`() {
        var rate = rate()
        rate.setLimit(600_000, by: 1, now: start)
        rate.setLimit(300_000, by: 1, now: after(10))
        #expect(rate.bitrate == 300_000)
        rate.setLimit(800_000, by: 1, now: after(300))
        #expect(rate.bitrate == 300_000)
        rate.update(now: after(509))
        #expect(rate.bitrate == 300_000)
        rate.update(now: after(510))
        #expect(rate.bitrate == 800_000)
        // A rise counts as a change too.
        rate.setLimit(850_000, by: 1, now: after(900))
        #expect(rate.bitrate == 800_000)
    }

    @Test func `a change of a hundredth changes nothing`() {
        var rate = rate()
        rate.setLimit(600_000, by: 1, now: start)
        rate.setLimit(595_000, by: 1, now: after(1000))
        #expect(rate.bitrate == 600_000)
        rate.setLimit(580_000, by: 1, now: after(1100))
        #expect(rate.bitrate == 580_000)
    }

    @Test func `a limit that is not renewed ends after 3 s`() {
        var rate = rate()
        rate.setLimit(300_000, by: 1, now: start)
        rate.update(now: after(2999))
        #expect(rate.bitrate == 300_000)
        rate.setLimit(300_000, by: 1, now: after(2999))
        rate.update(now: after(5998))
        #expect(rate.bitrate == 300_000)
        rate.update(now: after(5999))
        #expect(rate.bitrate == 900_000 && rate.limit == nil)
    }

    @Test func `the least limit of several consumers counts, until it ends`() {
        var rate = rate()
        rate.setLimit(300_000, by: 1, now: start)
        rate.setLimit(700_000, by: 2, now: after(2000))
        #expect(rate.bitrate == 300_000)
        rate.update(now: after(3000))
        #expect(rate.bitrate == 700_000)
    }

    @Test func `another wish keeps the limit`() {
        var rate = rate()
        rate.setLimit(300_000, by: 1, now: start)
        rate.setWish(200_000)
        #expect(rate.bitrate == 200_000)
        rate.setWish(2_000_000)
        #expect(rate.bitrate == 300_000)
    }
}

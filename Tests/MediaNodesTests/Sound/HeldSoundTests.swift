import Testing

@testable import MediaNodes

@Suite struct HeldSoundTests {
    private static let piece: UInt64 = 10_000_000

    /// Half a period more in each piece would be heard.
    private func tone(_ index: Int) -> [Int16] {
        (0..<480).flatMap { sample -> [Int16] in
            let place = (index * 480 + sample) % 240
            return [Int16(place < 120 ? 8000 : -8000), Int16(place < 120 ? 8000 : -8000)]
        }
    }

    @Test func `audio that is to be later is longer, without a gap`() {
        var held = HeldSound()
        held.hold(seconds: 0)
        var end: UInt64?
        for index in 0..<300 {
            if index == 10 { held.hold(seconds: 0.1) }
            if index == 200 { held.hold(seconds: 0.05) }
            let (time, samples) = held.take({ tone(index) }, at: UInt64(index) * Self.piece, lasting: Self.piece)
            // Nothing is missing, and nothing twice, but for the rounding of a sample.
            if let end { #expect(time + 25_000 > end && time < end + 25_000, "\(index)") }
            end = time + (samples.map { HeldSound.nanoseconds($0.count / 2) } ?? Self.piece)
            if index == 9 { #expect(held.seconds == 0) }
            if index == 199 { #expect(abs(held.seconds - 0.1) < 0.006) }
        }
        #expect(abs(held.seconds - 0.05) < 0.006)
    }

    @Test func `the next stream begins with its own hold at once, and the rest of the former one is not played`() {
        var held = HeldSound()
        held.hold(seconds: 0.3)
        _ = held.take({ tone(0) }, at: 0, lasting: Self.piece)
        held.hold(seconds: 0)
        held.begin(at: 2 * Self.piece)
        #expect(held.begins(with: Self.piece) == nil)
        #expect(held.begins(with: 2 * Self.piece) == true)
        let next = held.take({ tone(2) }, at: 2 * Self.piece, lasting: Self.piece)
        #expect(next.time == 2 * Self.piece && next.samples == nil)
        #expect(held.begins(with: Self.piece) == false)
    }

    @Test func `after a pause, audio begins with its hold at once`() {
        var held = HeldSound()
        _ = held.take({ tone(0) }, at: 0, lasting: Self.piece)
        held.hold(seconds: 0.2)
        let next = held.take({ tone(1) }, at: 120_000_000, lasting: Self.piece)
        #expect(next.time == 320_000_000 && next.samples == nil && held.seconds == 0.2)
    }

    @Test func `audio is later for as long as late packets need, and lip-sync adds to that`() {
        var held = HeldSound()
        func play(_ pieces: Range<UInt64>, jitter: Double) {
            for index in pieces {
                _ = held.take({ tone(Int(index)) }, at: index * Self.piece, lasting: Self.piece, jitter: jitter)
            }
        }
        play(0..<100, jitter: 0)
        #expect(held.seconds == 0)
        play(100..<400, jitter: 0.1)
        #expect(abs(held.seconds - 0.1) < 0.006 && held.hold < 0.006)
        held.hold(seconds: 0.05)
        play(400..<700, jitter: 0.1)
        #expect(abs(held.seconds - 0.15) < 0.006 && abs(held.hold - 0.05) < 0.006)
        held.hold(seconds: 0.4)
        play(700..<1500, jitter: 0.1)
        #expect(abs(held.seconds - 0.4) < 0.006)
    }

    @Test func `audio that comes too late to be played is played later at once, and nothing is missing then`() {
        var held = HeldSound()
        _ = held.take({ tone(0) }, at: 0, lasting: Self.piece)
        // It can still be played at its time.
        let inTime = held.take({ tone(1) }, at: Self.piece, lasting: Self.piece, lateness: 70_000_000, jitter: 0.09)
        #expect(inTime.time == Self.piece)
        let late = held.take({ tone(2) }, at: 2 * Self.piece, lasting: Self.piece, lateness: 150_000_000, jitter: 0.09)
        #expect(late.time == 2 * Self.piece + 90_000_000 && late.samples == nil)
        let next = held.take({ tone(3) }, at: 3 * Self.piece, lasting: Self.piece, lateness: 140_000_000, jitter: 0.09)
        #expect(next.time == 3 * Self.piece + 90_000_000 && held.seconds == 0.09)
    }
}

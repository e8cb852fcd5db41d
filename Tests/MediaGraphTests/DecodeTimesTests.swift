import Testing
import TestSupport

@testable import MediaGraph

/// The order of frames that are displayed in another order than they are decoded in.
@Suite struct DecodeTimesTests {
    /// In milliseconds.
    private func decoded(_ displayed: [UInt64], reordered: Int) -> [UInt64] {
        var times = DecodeTimes()
        return displayed.map { times.next(displayedAt: $0 * 1_000_000, reordered: reordered) / 1_000_000 }
    }

    @Test func `frames in the order of display are decoded when they are displayed`() {
        #expect(decoded([5, 6, 8, 9], reordered: 0) == [5, 6, 8, 9])
    }

    @Test func `frames are decoded one after the other, and before they are displayed`() {
        #expect(decoded([10, 40, 20, 30, 70, 50, 60, 80], reordered: 1) == [10, 11, 20, 30, 40, 50, 60, 70])
        // A pyramid of B-frames.
        #expect(decoded([10, 50, 30, 20, 40, 90, 70, 60, 80], reordered: 2) == [10, 11, 12, 20, 30, 40, 50, 60, 70])
    }

    @Test func `times rise over a stand-in and a keyframe behind it`() {
        var times = DecodeTimes()
        func next(_ time: UInt64, _ reordered: Int = 1) -> UInt64 {
            times.next(displayedAt: time * 1_000_000, reordered: reordered) / 1_000_000
        }
        #expect([10, 40, 20, 30].map { next($0) } == [10, 11, 20, 30])
        #expect(next(60, 0) == 60)
        #expect([61, 150, 90, 120].map { next($0) } == [61, 62, 90, 120])
    }

    @Test func `times never run back, whatever the stream states`() {
        for seed in 0..<500 as Range<UInt64> {
            var random = Seeded(seed)
            var (times, last) = (DecodeTimes(), UInt64(0))
            for _ in 0..<50 {
                let next = times.next(
                    displayedAt: .random(in: 0...100, using: &random), reordered: .random(in: 0...2, using: &random))
                #expect(next >= last)
                last = next
            }
        }
    }

    // MARK: H.265

    /// A set of one or more layers, with 2 reordered frames in the last one (ITU-T H.265, 7.3.2.2).
    private func frame(layers: Int) -> [UInt8] {
        var writer = BitWriter()
        writer.append(33 << 9 | 1, bits: 16)
        writer.append(0, bits: 4)
        writer.append(layers, bits: 3)
        writer.append(true)
        writer.append(1, bits: 48)
        writer.append(93, bits: 48)
        if layers > 0 {
            for layer in 0..<8 { writer.append(layer < layers ? 3 : 0, bits: 2) }
            for _ in 0..<layers { for bits in [44, 44, 8] { writer.append(1, bits: bits) } }
        }
        for value in [0, 1, 1920, 1080] { writer.append(unsigned: value) }
        writer.append(true)
        for value in [0, 0, 0, 4, 0, 0, 4] { writer.append(unsigned: value) }
        writer.append(true)
        for layer in 0...layers {
            for value in [4, layer == layers ? 2 : 1, 0] { writer.append(unsigned: value) }
        }
        writer.append(true)
        writer.align(with: false)
        return H264Unit.frame([[32 << 1, 1, 12], writer.unit, [34 << 1, 1, 5], [19 << 1, 1, 0x80]])
    }

    @Test func `H.265 states how many frames are reordered`() {
        #expect([0, 2, 6].map { H265Parameters(frame: frame(layers: $0))?.reorderedFrames } == [2, 2, 2])
        #expect(H265Parameters(frame: H264Unit.frame([[1 << 1, 1, 0x80]])) == nil)
        let whole = frame(layers: 0)
        for count in 0..<whole.count { _ = H265Parameters(frame: Array(whole.prefix(count))) }
        #expect(H265Parameters(frame: Array(whole.prefix(20))) == nil)
    }
}

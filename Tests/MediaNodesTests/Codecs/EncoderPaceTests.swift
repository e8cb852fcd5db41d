import MediaGraph
import Testing

@testable import MediaNodes

/// The bits of an encoder that counts frames, at 30 frames a second, on virtual time.
@Suite struct EncoderPaceTests {
    private struct Encoder {
        var quality = EncoderQuality(chosen: nil, isScalable: true, policy: nil, usualPolicy: .motion)
        var nanoseconds: UInt64 = 1_000_000_000

        init() {
            quality.setSource(640, 360, framesPerSecond: 30)
            quality.setWish(1_000_000)
        }

        /// Encodes frames at a distance, in multiples of the usual one. Returns their bits, in those of a usual frame.
        ///
        /// - Parameter dropped: the frames that were dropped before each one, because the encoder was busy.
        mutating func run(_ frames: Int, apart distance: Double = 1, dropped: (Int) -> Int = { _ in 0 }) -> Double {
            var bits = 0.0
            for frame in 0..<frames {
                let dropped = dropped(frame)
                for _ in 0...dropped {
                    nanoseconds += UInt64(distance * 1e9 / 30)
                    _ = quality.admitsFrame(at: nanoseconds, now: MediaTime(nanoseconds: nanoseconds))
                }
                let now = MediaTime(nanoseconds: nanoseconds)
                let target = quality.prepareFrame(after: dropped, now: now)
                quality.encoded(bytes: 100, now: now)
                bits += 1 / (target.frameShare * target.pace)
            }
            return bits
        }
    }

    @Test func `the bits of a gap are not paid out after it`() {
        for (gaps, distance) in [(1, 30.0), (3, 15), (10, 30), (100, 30), (7, 4)] {
            var encoder = Encoder()
            _ = encoder.run(60)
            _ = encoder.run(gaps, apart: distance)
            let bits = encoder.run(30)
            #expect(bits < 1.2 * 30, "\(gaps) of \(distance) frames: \(bits)")
            #expect(encoder.run(30) < 1.1 * 30)
        }
    }

    @Test(arguments: [1.5, 2, 4]) func `a source with fewer frames than its format says keeps its bitrate`(
        distance: Double
    ) {
        var encoder = Encoder()
        _ = encoder.run(120, apart: distance)
        let perFrame = encoder.run(60, apart: distance) / 60
        #expect(abs(perFrame / distance - 1) < 0.15, "\(perFrame)")
    }

    @Test func `an encoder that is too busy for half of the frames, or for a third, keeps its bitrate`() {
        for (pattern, distance) in [([1], 2.0), ([0, 1], 1.5), ([2], 3)] {
            var encoder = Encoder()
            _ = encoder.run(120) { pattern[$0 % pattern.count] }
            let perFrame = encoder.run(60) { pattern[$0 % pattern.count] } / 60
            #expect(abs(perFrame / distance - 1) < 0.15, "\(perFrame)")
        }
    }

    @Test func `frames dropped in a stall leave no bits to those after it`() {
        var encoder = Encoder()
        _ = encoder.run(60)
        _ = encoder.run(1) { _ in 30 }
        #expect(encoder.run(30) < 1.2 * 30)
    }
}

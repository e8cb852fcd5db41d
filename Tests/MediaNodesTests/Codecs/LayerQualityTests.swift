import MediaGraph
import Testing

@testable import MediaNodes

/// The encoder of a layer of a published video: 30 frames a second, on virtual time.
@Suite struct LayerQualityTests {
    private struct Encoder {
        var quality: EncoderQuality
        var frames: UInt64 = 0
        var encoded = 0

        init(isOnDemand: Bool) {
            quality = EncoderQuality(
                chosen: nil, isScalable: true, policy: nil, usualPolicy: .motion, isOnDemand: isOnDemand)
            quality.setSource(640, 360, framesPerSecond: 30)
            quality.setWish(1_000_000)
        }

        /// - Parameters:
        ///   - limit: renewed with each frame; nil for no consumer.
        ///   - busy: the share of the time that encoding takes.
        ///   - isRecorded: whether another consumer, which has no limit, gets each frame.
        mutating func run(
            _ seconds: Double, limit: Int?, keepsSize: Bool = true, busy: Double = 0.1, keyframes: Bool = false,
            isRecorded: Bool = false
        ) {
            for _ in 0..<Int(seconds * 30) {
                frames += 1
                let now = MediaTime(nanoseconds: frames * 33_333_333)
                if let limit { quality.setLimit(limit, by: 1, policy: nil, keepsSize: keepsSize, now: now) }
                guard quality.admitsFrame(at: now.nanoseconds, now: now) else { continue }
                _ = quality.prepareFrame(after: 0, now: now)
                let end = MediaTime(nanoseconds: now.nanoseconds + UInt64(busy * 33_333_333))
                quality.encoded(bytes: 100, isKeyframe: keyframes || encoded == 0, now: end)
                encoded += 1
                if isRecorded { quality.holdSize() }
            }
        }
    }

    @Test func `a layer encodes its first frame, and then none without a consumer`() {
        var encoder = Encoder(isOnDemand: true)
        encoder.run(10, limit: nil)
        #expect(encoder.encoded == 1)
        #expect(encoder.quality.isResting)
        encoder.run(1, limit: 500_000)
        #expect(encoder.encoded > 25)
        #expect(!encoder.quality.isResting)
        encoder.run(4, limit: nil)
        let before = encoder.encoded
        encoder.run(10, limit: nil)
        #expect(encoder.encoded == before, "a limit that is not renewed ends")
    }

    @Test func `a recording gets all frames while no room wants them, also if it begins then`() {
        var encoder = Encoder(isOnDemand: false)
        encoder.run(1, limit: 500_000, isRecorded: true)
        encoder.run(20, limit: 0, isRecorded: true)
        #expect(encoder.encoded == 21 * 30)
        #expect(!encoder.quality.isResting)
        encoder.run(10, limit: 0)
        #expect(encoder.quality.isResting, "the recording has ended")
        let before = encoder.encoded
        encoder.run(1, limit: 0, isRecorded: true)
        #expect(encoder.encoded == before)
        encoder.quality.demandKeyframe()
        encoder.run(20, limit: 0, keyframes: true, isRecorded: true)
        #expect(encoder.encoded == before + 20 * 30)
    }

    @Test func `a layer without a consumer encodes a keyframe on request`() {
        var encoder = Encoder(isOnDemand: true)
        encoder.run(1, limit: nil)
        encoder.quality.demandKeyframe()
        encoder.run(1, limit: nil, keyframes: true)
        #expect(encoder.encoded == 2)
    }

    @Test func `the whole size needs no consumer`() {
        var encoder = Encoder(isOnDemand: false)
        encoder.run(1, limit: nil)
        #expect(encoder.encoded == 30)
    }

    @Test func `beside other layers, a narrow network and a busy processor leave the size as it is`() {
        var encoder = Encoder(isOnDemand: false)
        encoder.run(10, limit: 150_000)
        #expect(encoder.quality.target.size == nil)
        encoder.run(10, limit: 1_000_000, busy: 0.95)
        #expect(encoder.quality.target.size == nil)
        #expect(encoder.quality.isOverloaded)
        #expect(encoder.quality.load > 0.9)
        encoder.run(5, limit: 1_000_000)
        #expect(!encoder.quality.isOverloaded)
    }

    @Test func `alone, a layer follows the network with its size, and returns to its own beside others`() {
        var encoder = Encoder(isOnDemand: true)
        encoder.run(10, limit: 150_000, keepsSize: false)
        #expect(encoder.quality.target.size != nil)
        encoder.run(1, limit: 1_000_000, keepsSize: true)
        #expect(encoder.quality.target.size == nil)
    }
}

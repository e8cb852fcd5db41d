internal import Foundation
internal import MediaGraph
internal import RTP

/// A counter that goes on when the object behind it is replaced by another one, which counts from zero, and when the former one
/// returns, whose count goes on.
///
/// Told about twice a second. So up to half a second before a replacement may be missing.
struct GrowingCount<Value: AdditiveArithmetic & Comparable> {
    private(set) var total = Value.zero
    /// By the object.
    private var last: [UInt64: Value]

    /// - Parameter start: a count that is not part of the total.
    init(after start: Value = .zero, of object: UInt64 = 0) { last = [object: start] }

    mutating func update(_ count: Value, of object: UInt64) {
        let former = last.updateValue(count, forKey: object) ?? .zero
        total += count < former ? count : count - former
    }
}

/// The counters of the encoder of one RTP stream, since the stream exists.
struct EncoderTotals {
    private(set) var captured: GrowingCount<Int>
    private(set) var encoded: GrowingCount<Int>
    private(set) var keyframes: GrowingCount<Int>
    private var captureRate = RateWindow(over: .seconds(1))
    private var encodingRate = RateWindow(over: .seconds(1))

    /// - Parameter start: the counters of an encoder that has been running before.
    init(after start: MediaStatistics.VideoEncoder?) {
        let encoder = start?.encoder ?? 0
        captured = GrowingCount(after: start?.captured ?? 0, of: encoder)
        encoded = GrowingCount(after: start?.encoded ?? 0, of: encoder)
        keyframes = GrowingCount(after: start?.keyframes ?? 0, of: encoder)
    }

    mutating func update(_ counters: MediaStatistics.VideoEncoder) {
        captured.update(counters.captured, of: counters.encoder)
        encoded.update(counters.encoded, of: counters.encoder)
        keyframes.update(counters.keyframes, of: counters.encoder)
    }

    /// Called about twice a second.
    mutating func sample(_ counters: MediaStatistics.VideoEncoder?, now: MonotonicTime) {
        if let counters { update(counters) }
        captureRate.sample(captured.total, now: now)
        encodingRate.sample(encoded.total, now: now)
    }

    /// With a limitation of the RTP stream.
    func statistics(
        _ counters: MediaStatistics.VideoEncoder, _ limitation: QualityLimitation
    ) -> SessionStatistics.Encoder {
        SessionStatistics.Encoder(
            framesCaptured: captured.total, framesEncoded: encoded.total, keyframesEncoded: keyframes.total,
            capturedPerSecond: captureRate.measured, encodedPerSecond: encodingRate.measured,
            targetBitsPerSecond: counters.targetBitsPerSecond > 0 ? counters.targetBitsPerSecond : nil,
            limitation: limitation)
    }
}

/// The audio that the encoder of a track gets, since the track exists.
struct SoundTotals {
    private var seconds: GrowingCount<Double>
    private var energy: GrowingCount<Double>

    /// - Parameter start: the counters of an encoder that has been running before.
    init(after start: MediaStatistics.AudioEncoder?) {
        seconds = GrowingCount(after: start?.seconds ?? 0, of: start?.encoder ?? 0)
        energy = GrowingCount(after: start?.energy ?? 0, of: start?.encoder ?? 0)
    }

    /// Called about twice a second.
    mutating func update(_ counters: MediaStatistics.AudioEncoder) {
        seconds.update(counters.seconds, of: counters.encoder)
        energy.update(counters.energy, of: counters.encoder)
    }

    func statistics(_ counters: MediaStatistics.AudioEncoder) -> SessionStatistics.Sound {
        SessionStatistics.Sound(
            seconds: seconds.total, level: amplitude(ofDecibels: counters.level), energy: energy.total)
    }
}

/// The amplitude of a level in dBFS, 0...1. 0 for silence, which is -120.
package func amplitude(ofDecibels level: Double) -> Double {
    level <= -120 ? 0 : min(1, pow(10, level / 20))
}

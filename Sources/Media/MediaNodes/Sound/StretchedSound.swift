import MediaGraph

/// Lengthens and shortens sound, so that it is played later or earlier without a gap, and at the same pitch.
///
/// A change repeats or drops one period of the wave, with a crossfade (WSOLA). It waits for sound that has a period, or is
/// quiet. The longer it has waited, the less it asks for. Changes are 0.1 s apart at least, or 30 ms while more is wanted than
/// viewers tolerate.
struct StretchedSound: Sendable {
    /// Periods in frames of 48 kHz: 2.5 to 10 ms.
    private static let periods = 120...480
    static var shortest: Int { periods.lowerBound }
    /// The search compares each fourth frame.
    private static let stride = 4
    /// Between two changes, in frames. The shorter one holds while more frames are wanted than `noticed`.
    private static let (interval, shortInterval) = (4800, 1440)
    private static let noticed = Int(SlewedHold.noticed * 48_000)
    /// In frames: how long it waits until it takes any sound.
    private static let patience = 48_000
    /// Interleaved.
    private static let channels = 2
    /// The root mean square of quiet sound, of 32,768: -54 dBFS.
    private static let quiet = 65.0

    /// Since the last change, in frames.
    private var waited = interval

    /// Returns changed sound, or nil if these samples stay as they are.
    ///
    /// - Parameters:
    ///   - samples: 48 kHz, two channels, interleaved.
    ///   - wanted: by how many frames the sound is to become longer. Below zero, shorter.
    mutating func change(_ samples: [Int16], by wanted: Int) -> [Int16]? {
        let frames = samples.count / Self.channels
        waited += frames
        let longest = min(Self.periods.upperBound, frames / 2, abs(wanted))
        let interval = abs(wanted) > Self.noticed ? Self.shortInterval : Self.interval
        guard waited >= interval, longest >= Self.periods.lowerBound else { return nil }
        let needed = 0.9 * (1 - Double(waited) / Double(Self.patience))
        guard let period = Self.period(of: samples, longest: longest, needed: needed) else { return nil }
        waited = 0
        return wanted > 0 ? Self.repeating(period, of: samples) : Self.dropping(period, of: samples)
    }

    /// The sound starts later or earlier anyway, as after a pause.
    mutating func restart() { waited = Self.interval }

    /// The period that fits best, in frames. Nil if none fits well enough.
    private static func period(of samples: [Int16], longest: Int, needed: Double) -> Int? {
        let mono = Swift.stride(from: 0, to: samples.count - 1, by: channels * stride).map {
            Double(samples[$0]) + Double(samples[$0 + 1])
        }
        let window = mono.count / 2
        let loudness = (mono.reduce(0) { $0 + $1 * $1 } / Double(max(mono.count, 1))).squareRoot() / 2
        if loudness < quiet { return longest }
        var best: (fit: Double, period: Int)?
        for lag in (periods.lowerBound / stride)...max(periods.lowerBound / stride, longest / stride) {
            var (product, here, there) = (0.0, 1.0, 1.0)
            for index in 0..<min(window, mono.count - lag) {
                product += mono[index] * mono[index + lag]
                here += mono[index] * mono[index]
                there += mono[index + lag] * mono[index + lag]
            }
            let fit = product / (here * there).squareRoot()
            if fit > best?.fit ?? needed { best = (fit, lag * stride) }
        }
        return best?.period
    }

    private static func repeating(_ period: Int, of samples: [Int16]) -> [Int16] {
        let length = period * channels
        return Array(samples[..<length]) + faded(samples[length..<(2 * length)], samples[..<length])
            + samples[length...]
    }

    private static func dropping(_ period: Int, of samples: [Int16]) -> [Int16] {
        let length = period * channels
        return faded(samples[..<length], samples[length..<(2 * length)]) + samples[(2 * length)...]
    }

    private static func faded(_ from: ArraySlice<Int16>, _ to: ArraySlice<Int16>) -> [Int16] {
        let frames = Double(from.count / channels)
        return zip(from, to).enumerated().map { index, pair in
            let share = Double(index / channels) / frames
            return Int16((Double(pair.0) * (1 - share) + Double(pair.1) * share).rounded())
        }
    }
}

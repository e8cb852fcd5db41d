import GStreamerKit
import Glibc

/// 8 ms of audio as 32 bits: which of 32 bands between 190 and 2,200 Hz are louder than their average.
///
/// Two recordings of the same audio agree in most bits, whatever the volume and the room; unrelated ones in half.
struct SpectrumWord: Sendable {
    /// The number of the word since running time 0, in steps of 8 ms.
    let number: Int
    let bits: UInt32
    /// Whether the audio can be compared: noise below speech level cannot.
    let isLoud: Bool
}

/// Splits audio into words of 8 ms on one time line and describes each as a `SpectrumWord`.
///
/// Takes interleaved signed 16-bit stereo at 48 kHz; works at 8 kHz.
struct SpectrumReader {
    /// The duration of one word.
    static let secondsPerWord = Double(hop) / Double(rate)

    private static let rate = 8_000
    private static let decimation = 6
    private static let hop = 64
    private static let window = 128
    private static let firstBand = 3
    private static let bandCount = 32
    /// How many words the average level of a band is taken over.
    private static let memory: Float = 64
    /// Mean magnitude of the bands above which audio counts as loud: about -55 dBFS of speech.
    private static let loud: Float = 30
    /// A buffer further than this from the end of the previous one restarts the time line, in samples at 8 kHz.
    private static let tolerance = rate / 50

    private let transform = FourierTransform(size: window)
    /// A Hann window. GStreamer would compute its cosines for each word.
    private let shape: [Float] = (0..<window).map { index in
        0.5 - 0.5 * cos(2 * .pi * Float(index) / Float(window))
    }
    /// The newest samples, of which the last `window` are analysed after each hop.
    private var samples: [Float] = []
    /// The position of the next sample on the time line, in samples at 8 kHz. Nil before the first.
    private var position: Int?
    private var usual = [Float](repeating: 0, count: bandCount)
    private var wordCount = 0

    /// Reads a buffer that begins at `time` (nanoseconds of running time) and returns its words.
    mutating func read(_ bytes: RawSpan, at time: UInt64) -> [SpectrumWord] {
        let start = Int(time / 1000) * Self.rate / 1_000_000
        if position.map({ abs($0 - start) > Self.tolerance }) ?? true {
            position = start
            samples.removeAll(keepingCapacity: true)
        }
        var words: [SpectrumWord] = []
        let moments = Self.decimation
        let step = 4 * moments
        // The rest of a buffer whose length is not a multiple of 6 samples is too short to matter.
        for offset in stride(from: 0, through: bytes.byteCount - step, by: step) {
            var sum: Int32 = 0
            for index in 0..<2 * moments {
                sum += Int32(bytes.unsafeLoadUnaligned(fromByteOffset: offset + 2 * index, as: Int16.self))
            }
            samples.append(Float(sum) / Float(2 * moments))
            guard let next = position.map({ $0 + 1 }) else { break }
            position = next
            guard next % Self.hop == 0, samples.count >= Self.window else { continue }
            samples.removeFirst(samples.count - Self.window)
            words.append(describe(number: next / Self.hop))
        }
        return words
    }

    private mutating func describe(number: Int) -> SpectrumWord {
        let magnitudes = transform.magnitudes(of: zip(samples, shape).map { $0 * $1 })
        var bits: UInt32 = 0
        var sum: Float = 0
        // The first words have full weight, so that the mean is correct from the start.
        let weight = max(1 / Self.memory, 1 / Float(wordCount + 1))
        for band in 0..<Self.bandCount {
            let magnitude = magnitudes[Self.firstBand + band]
            if magnitude > usual[band] { bits |= 1 << UInt32(band) }
            usual[band] += (magnitude - usual[band]) * weight
            sum += magnitude
        }
        wordCount += 1
        return SpectrumWord(number: number, bits: bits, isLoud: sum / Float(Self.bandCount) > Self.loud)
    }
}

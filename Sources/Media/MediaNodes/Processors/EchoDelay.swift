/// Measures how long played audio takes until the microphone records it.
///
/// Timestamps are not enough: sound servers and loudspeakers add unreported delays, and the canceller searches a window
/// of only 40 ms. Compares the spectra of both signals at every delay up to 0.9 s. The delay at which most bits agree
/// for a while is the result. Measured with speech: found 0.5 to 1 s after it begins.
///
/// The `delay-agnostic` of webrtcdsp 1.22 does not replace it: it removes 46 dB of an echo after 40 ms, and less than 1 dB
/// after 180, 400 and 600 ms.
struct EchoDelay {
    /// The longest detectable delay, as a number of words of 8 ms.
    private static let longest = 112
    /// How many words the agreement is averaged over.
    private static let memory: Float = 64
    /// The mean number of differing bits, of 32, between unrelated audio.
    private static let unrelated: Float = 16
    /// At most this many differing bits, and this many fewer than the average, are not a coincidence: other speech with
    /// the same rhythm differs in 7 or more.
    private static let accepted: Float = 6.5
    private static let margin: Float = 3.5
    /// How long the same delay must be best, as a number of words: to be accepted first, and to replace another. While
    /// the local user also speaks, other delays may look best for a second.
    private static let neededAgreement = 16
    private static let neededAgreementForChange = 150

    private var playing = SpectrumReader()
    private var recording = SpectrumReader()
    private var played = [SpectrumWord?](repeating: nil, count: 256)
    private var distances = [Float](repeating: unrelated, count: longest)
    private var candidate = 0
    private var agreement = 0

    /// In seconds, from the timestamp of the played audio to the timestamp of its echo. Nil until the echo is found.
    private(set) var seconds: Double?

    /// Reads audio on its way to the loudspeaker.
    mutating func play(_ bytes: RawSpan, at time: UInt64) {
        for word in playing.read(bytes, at: time) { played[word.number & 255] = word }
    }

    /// Reads audio from the microphone. True if another delay was found.
    mutating func record(_ bytes: RawSpan, at time: UInt64) -> Bool {
        var isNew = false
        for word in recording.read(bytes, at: time) where compare(word) { isNew = decide() || isNew }
        return isNew
    }

    /// False if there was no played audio to compare with.
    private mutating func compare(_ word: SpectrumWord) -> Bool {
        var hasCompared = false
        for delay in 0..<Self.longest where word.number >= delay {
            guard let other = played[(word.number - delay) & 255], other.number == word.number - delay, other.isLoud
            else { continue }
            let difference = Float((word.bits ^ other.bits).nonzeroBitCount)
            distances[delay] += (difference - distances[delay]) / Self.memory
            hasCompared = true
        }
        return hasCompared
    }

    private mutating func decide() -> Bool {
        guard let least = distances.min(), let best = distances.firstIndex(of: least) else { return false }
        let mean = distances.reduce(0, +) / Float(distances.count)
        guard least < Self.accepted, mean - least > Self.margin, abs(best - candidate) <= 1 else {
            candidate = best
            agreement = 0
            return false
        }
        agreement += 1
        guard agreement >= (seconds == nil ? Self.neededAgreement : Self.neededAgreementForChange) else { return false }
        let found = Double(best) * SpectrumReader.secondsPerWord
        // Neighbouring words describe nearly the same audio, so a step of one is not a change.
        if let seconds, abs(found - seconds) < 1.5 * SpectrumReader.secondsPerWord { return false }
        seconds = found
        return true
    }
}

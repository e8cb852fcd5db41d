/// Finds how long what is played takes until the microphone hears it.
///
/// Timestamps alone do not tell: sound servers and loudspeakers add delays that nobody reports, while the canceller
/// looks for the echo in a window of 40 ms only. Compares the spectra of both sounds at every delay up to 0.9 s; where
/// they agree in most bits for a while, that is the delay. Measured with speech: found 0.5 to 1 s after it begins.
///
/// The `delay-agnostic` of webrtcdsp 1.22 does not replace it: it removes 46 dB of an echo after 40 ms, and less than 1 dB
/// after 180, 400 and 600 ms.
struct EchoDelay {
    /// Longest delay that is found, in words of 8 ms.
    private static let longest = 112
    /// How many words the agreement is taken over.
    private static let memory: Float = 64
    /// Bits of 32 that differ between unrelated sounds.
    private static let unrelated: Float = 16
    /// Fewer differing bits than this, and this many fewer than on average, are no accident: other speech that happens
    /// to keep the same rhythm differs in 7 and more.
    private static let accepted: Float = 6.5
    private static let margin: Float = 3.5
    /// How long the same delay must be best, in words: to be taken first, and to replace another. While somebody speaks
    /// here too, others may look best for a second.
    private static let patience = 16
    private static let patienceForChange = 150

    private var playing = SpectrumReader()
    private var recording = SpectrumReader()
    private var played = [SpectrumWord?](repeating: nil, count: 256)
    private var distances = [Float](repeating: unrelated, count: longest)
    private var candidate = 0
    private var agreement = 0

    /// In seconds, from the timestamp of what is played to the timestamp of its echo; nil until it is found.
    private(set) var seconds: Double?

    /// Sound on its way to the loudspeaker.
    mutating func play(_ bytes: RawSpan, at time: UInt64) {
        var words: [SpectrumWord] = []
        playing.read(bytes, at: time) { words.append($0) }
        for word in words { played[word.number & 255] = word }
    }

    /// Sound from the microphone. True when another delay was found.
    mutating func record(_ bytes: RawSpan, at time: UInt64) -> Bool {
        var words: [SpectrumWord] = []
        recording.read(bytes, at: time) { words.append($0) }
        var isNew = false
        for word in words where compare(word) { isNew = decide() || isNew }
        return isNew
    }

    /// False when nothing was played that could be compared.
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
        guard agreement >= (seconds == nil ? Self.patience : Self.patienceForChange) else { return false }
        let found = Double(best) * SpectrumReader.secondsPerWord
        // Neighbouring words describe nearly the same sound: a step of one is no news.
        if let seconds, abs(found - seconds) < 1.5 * SpectrumReader.secondsPerWord { return false }
        seconds = found
        return true
    }
}

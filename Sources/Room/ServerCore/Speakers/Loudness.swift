internal import RTP

/// Whether someone speaks in an audio stream, by the levels that its packets claim (RFC 6464).
///
/// Audio is loud if it is far above the stream's own noise, the quietest tenth of a second among the last three seconds. So a fan
/// is silent, and so is a client that always claims to be loud.
struct Loudness {
    /// Between two calls of `endInterval`.
    static let interval = TimeInterval.milliseconds(100)
    /// Above the noise, in decibels: that of a word.
    static let word = 10.0
    /// No stream counts for more than this above its noise, so that nobody wins by claiming the most.
    static let most = 30.0
    /// The least noise, in dBov: gates and noise suppression leave none.
    private static let quietestNoise = -60.0
    /// The share of the difference that the score makes up for in an interval: it rises with a time constant of 200 ms, and
    /// falls with one of 2 s.
    private static let rise = 0.3935
    private static let fall = 0.0488
    /// A client that speaks has words for two thirds of its last six intervals, in percent of an interval.
    private static let rememberedIntervals = 6
    private static let enough = 400
    /// Intervals of a second.
    private static let intervalsPerSecond = 10

    /// Of this interval.
    private var sum = 0
    private var packets = 0
    private var loudPackets = 0
    /// A packet with a lower number, which is a louder one, is part of a word. None is before the noise is known.
    private var wordLevel: UInt8 = 0
    /// The quietest intervals of this second and of the two before, in dBov.
    private var quietest = (0.0, 0.0, 0.0)
    private var intervals = 0
    /// The share of words in each of the last intervals, in percent, a byte each, the newest one last.
    private var words: UInt64 = 0
    /// How far it stood out lately, in decibels.
    private(set) var score = 0.0

    /// Counts a packet. Returns whether it is the first one of the interval.
    @inline(__always)
    mutating func add(_ level: AudioLevel) -> Bool {
        let level = level.negativeDecibels
        sum += Int(level)
        packets += 1
        if level < wordLevel { loudPackets += 1 }
        return packets == 1
    }

    mutating func endInterval() {
        var excess = 0.0
        var share: UInt64 = 0
        if packets > 0 {
            let level = -Double(sum) / Double(packets)
            learn(level)
            excess = min(max(level - noise, 0), Self.most)
            // Loud packets among quiet ones in each interval are a pattern, and no words.
            if excess >= Self.word / 2 { share = UInt64(loudPackets * 100 / packets) }
            (sum, packets, loudPackets) = (0, 0, 0)
        }
        score += (excess - score) * (excess > score ? Self.rise : Self.fall)
        words = (words << 8 | share) & (1 << UInt64(8 * Self.rememberedIntervals) - 1)
    }

    /// Whether words fill at least half of the last interval.
    var isSpeaking: Bool { words & 0xff >= 50 }

    /// Whether somebody has spoken for 400 ms of the last 600. A cough is shorter.
    var isSteady: Bool {
        (0..<Self.rememberedIntervals).reduce(0) { $0 + Int(words >> UInt64(8 * $1) & 0xff) } >= Self.enough
    }

    /// Whether further intervals without packets would change nothing of interest.
    var isIdle: Bool { packets == 0 && words == 0 && score < 1 }

    private var noise: Double { max(min(quietest.0, min(quietest.1, quietest.2)), Self.quietestNoise) }

    private mutating func learn(_ level: Double) {
        if intervals % Self.intervalsPerSecond == 0 {
            quietest = intervals == 0 ? (level, level, level) : (level, quietest.0, quietest.1)
        }
        intervals += 1
        quietest.0 = min(quietest.0, level)
        wordLevel = UInt8(max(0, -(noise + Self.word)))
    }
}

/// The voice in a stream, as another part of the room needs to know it.
struct SpeakerReport: Sendable, Equatable {
    var stream: Int
    /// How far it stood out from its own noise lately, in decibels.
    var score: Double
    /// Whether there are words now.
    var isSpeaking: Bool
    /// Whether there have been words for long enough to take the place of another stream.
    var isSteady: Bool

    init(_ stream: Int, score: Double = 0, isSpeaking: Bool = false, isSteady: Bool = false) {
        self.stream = stream
        self.score = score
        self.isSpeaking = isSpeaking
        self.isSteady = isSteady
    }

    init(_ stream: Int, _ loudness: Loudness) {
        self.init(
            stream, score: loudness.score, isSpeaking: loudness.isSpeaking, isSteady: loudness.isSteady)
    }

    /// Whether it tells nothing that is not true of every silent stream.
    var isQuiet: Bool { score < 1 && !isSpeaking && !isSteady }
}

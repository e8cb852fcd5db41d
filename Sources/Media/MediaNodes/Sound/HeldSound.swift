import MediaGraph

/// The audio of one stream, which is played later than its timestamps state: so that late packets are in time, and so that
/// it is in step with the stream's video.
///
/// The delay approaches its goal while the audio plays (`StretchedSound`), and at once after a pause, and when the audio is too
/// late anyway.
struct HeldSound: Sendable {
    private static let sampleRate = 48_000
    /// After a pause of so many nanoseconds, audio may begin with another delay.
    private static let pause: UInt64 = 100_000_000
    /// Audio that arrives so many nanoseconds after its time is still played: the pipeline's latency for late packets, and
    /// 20 ms for the decoder.
    private static let allowance = UInt64(RTPInputNode.audioLatency + 20) * 1_000_000

    /// By how many samples of a channel the audio is later.
    private var now = 0
    /// By how many it is to be later for late packets, and for lip-sync.
    private var jitter = 0
    private var lipSync = 0
    private var goal: Int { min(jitter + lipSync, Self.samples(PlayoutDelay.maximum)) }
    private var stretched = StretchedSound()
    /// The end of the newest audio, without the delay.
    private var end: UInt64?
    /// The time from which on audio is of another stream. Nil after its first audio.
    private var boundary: UInt64?

    /// The present delay.
    var seconds: Double { Double(now) / Double(Self.sampleRate) }

    /// The part of the present delay that is for lip-sync.
    var hold: Double { Double(max(0, now - jitter)) / Double(Self.sampleRate) }

    mutating func hold(seconds: Double) { lipSync = Self.samples(seconds) }

    /// Audio from this time on, in nanoseconds, is of another stream, which begins with the delay that it is to have.
    mutating func begin(at boundary: UInt64) { self.boundary = boundary }

    /// Whether another stream begins with the audio of this time. Nil for the rest of the former stream, which is not played.
    mutating func begins(with time: UInt64) -> Bool? {
        guard let boundary else { return false }
        guard time >= boundary else { return nil }
        (self.boundary, end) = (nil, nil)
        return true
    }

    /// Takes the next audio.
    ///
    /// - Parameters:
    ///   - samples: 48 kHz, two channels, interleaved. Asked for only if they may have to change.
    ///   - time: of the first sample, in nanoseconds.
    ///   - duration: in nanoseconds.
    ///   - lateness: by how many nanoseconds it arrives after that time.
    ///   - jitter: how many seconds later it is to be played so that late packets are in time.
    /// - Returns: the time to play it at, and other samples to play instead. Nil if they stay.
    mutating func take(
        _ samples: () -> [Int16], at time: UInt64, lasting duration: UInt64, lateness: UInt64 = 0, jitter: Double = 0
    ) -> (time: UInt64, samples: [Int16]?) {
        self.jitter = Self.samples(jitter)
        let isTooLate = lateness > Self.allowance + Self.nanoseconds(now) && goal > now
        if isTooLate || end.map({ time > $0 + Self.pause }) ?? true {
            now = goal
            stretched.restart()
        }
        end = time + duration
        let start = time + Self.nanoseconds(now)
        let wanted = goal - now
        guard abs(wanted) >= StretchedSound.shortest else { return (start, nil) }
        let before = samples()
        guard let changed = stretched.change(before, by: wanted) else { return (start, nil) }
        now += (changed.count - before.count) / 2
        return (start, changed)
    }

    private static func samples(_ seconds: Double) -> Int { Int(seconds * Double(sampleRate)) }

    /// The length of so many samples of a channel.
    static func nanoseconds(_ samples: Int) -> UInt64 { UInt64(samples) * 1_000_000_000 / UInt64(sampleRate) }
}

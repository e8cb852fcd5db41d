internal import CongestionControl

/// Splits the rate of an up session among its streams: audio first, up to four fifths if there is video, and then video in
/// proportion to what each wishes.
///
/// Rates are bits per second, of the path unless stated otherwise (`PathRate`).
struct RateShares {
    /// One published stream.
    struct Stream {
        var isVideo: Bool
        /// Its rate of the path now, frames that were dropped included. 0 before its first packets.
        var used = 0.0
        /// The rate of media that its encoder would send without a limit. Nil if nothing tells, or nothing here encodes it.
        var wished: Int?
        /// Whether it has sent before. One that is silent since then, such as a camera that is off, needs little.
        var hasSent = false
    }

    /// Opus at 64 kbit/s with 50 packets a second.
    static let audio = 90_000.0
    /// Of video whose wish nobody knows and that does not flow yet.
    static let passing = 4_000_000.0
    static let leastPassing = 150_000.0
    /// The least share of the target that video gets, however much audio there is.
    private static let leastShare = 0.2

    /// The rate of the path that all streams together can use.
    static func demand(of streams: [Stream]) -> Double { streams.reduce(0) { $0 + demand(of: $1) } }

    private static func demand(of stream: Stream) -> Double {
        guard stream.isVideo else {
            return stream.wished.map { max(stream.used, PathRate.ofAudio(Double($0))) } ?? use(of: stream)
        }
        if let wished = stream.wished { return PathRate.ofMedia(Double(wished)) }
        // A camera's own video may become larger with the scene.
        return stream.used > 0 || stream.hasSent ? max(stream.used * 1.5, leastPassing) : passing
    }

    /// The rate of the path that an audio stream takes from the others.
    private static func use(of audio: Stream) -> Double { audio.used > 0 ? audio.used : Self.audio }

    /// The share of each stream in a target, as a rate of the path. Nil for audio that nothing here encodes, which has no
    /// limit.
    ///
    /// - Parameter repairs: the rate of the path that retransmissions use.
    static func shares(of target: Double, among streams: [Stream], repairs: Double = 0) -> [Double?] {
        let (audios, videos) = (streams.filter { !$0.isVideo }, streams.filter(\.isVideo))
        let wishes = videos.reduce(0) { $0 + demand(of: $1) }
        let sounds = audios.reduce(0) { $0 + demand(of: $1) }
        let most = target - min(target * leastShare, wishes)
        let sound = audios.reduce(0) { $0 + use(of: $1) }
        let left = max(target - most, target - sound - repairs)
        return streams.map { stream in
            if stream.isVideo { return left * demand(of: stream) / max(wishes, 1) }
            return stream.wished.map { _ in most * demand(of: stream) / max(sounds, 1) }
        }
    }
}

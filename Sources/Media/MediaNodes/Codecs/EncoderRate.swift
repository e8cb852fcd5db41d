import MediaGraph

/// Makes an encoder follow the limits of its consumers at once: with a lower bitrate first, then with fewer frames.
/// `VideoAdaptation` decides within seconds whether the size falls instead.
///
/// A limit ends if its consumer does not renew it. Rates fall at once and rise after half a second, so that a link that
/// wavers changes the video seldom. Rates are bits of encoded video per second.
struct EncoderRate {
    /// How long a limit lasts.
    static let lifetime = Duration.seconds(3)
    /// How long the rate stays before it rises.
    static let patience = Duration.milliseconds(500)
    /// Below this share of the wish, frames are dropped so that each keeps its bits.
    static let leastShare = 1.0 / 3
    /// An encoder that exceeds its limit by a quarter for long skips frames: a scene may need more bits than the limit at the
    /// worst quality that the encoder has. Less is left to the encoder, which gives larger frames after a skipped one.
    static let tolerance = 1.25
    /// The bits beyond that, in seconds of the limit: how many are allowed, and how many count, so that one large frame stops
    /// the video for half a second at most.
    static let longestExcess = 0.5
    static let mostExcess = 1.125
    /// The shares of the frames that are encoded.
    private static let frameShares = [1, 3.0 / 4, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 6]
    /// Smaller changes change nothing.
    private static let change = 0.02

    private struct Limit {
        var source: UInt64
        var rate: Int
        var until: MediaTime
        var policy: Degradation?
        var keepsSize = false
    }

    private var limits: [Limit] = []
    /// Whether a consumer without a limit needs the video too, such as a recording. Those that want nothing then do not count.
    var isNeeded = false
    /// The bitrate that the present size needs for the quality of the whole size. 0 before it is known.
    private(set) var wish = 0
    /// The bitrate without a limit. For a size that is not whole, it is more than the wish.
    private(set) var most = 0
    /// The most frames to encode, as a share, whatever the limit.
    var mostFrames = 1.0
    /// Whether the newest frame is skipped because the encoder has exceeded its limit.
    private(set) var isExceeding = false
    /// The limit that counts. Nil without one.
    private(set) var limit: Int?
    private var changed: MediaTime?
    /// The frames that may be encoded, less those that were.
    private var credit = 0.0
    /// Encoded bits beyond the limit, and the timestamp of the newest frame.
    private var excess = 0.0
    private var newest: UInt64?

    /// The bitrate for the encoder. 0 before the wish is known.
    var bitrate: Int { min(most, limit ?? .max) }

    /// The share of the frames to encode.
    var frameShare: Double {
        guard let limit, wish > 0 else { return mostFrames }
        guard limit > 0 else { return 0 }
        let share = Double(limit) / (Double(wish) * Self.leastShare)
        return min(mostFrames, Self.frameShares.first { $0 <= share } ?? Self.frameShares[Self.frameShares.count - 1])
    }

    mutating func setWish(_ rate: Int, most: Int? = nil) { (wish, self.most) = (rate, most ?? rate) }

    /// The policy of the first consumer that has one. Those of several would undo each other.
    var policy: Degradation? { limits.first { $0.policy != nil }?.policy }
    /// Whether a consumer gets the video in several sizes, so that this one stays.
    var keepsSize: Bool { limits.contains(where: \.keepsSize) }

    /// - Parameter source: the consumer. The least limit of all counts.
    mutating func setLimit(
        _ rate: Int, by source: UInt64, policy: Degradation? = nil, keepsSize: Bool = false, now: MediaTime
    ) {
        let new = Limit(
            source: source, rate: max(0, rate), until: now + Self.lifetime, policy: policy, keepsSize: keepsSize)
        if let place = limits.firstIndex(where: { $0.source == source }) {
            limits[place] = new
        } else {
            limits.append(new)
        }
        update(now: now)
    }

    /// Follows the limits as time passes.
    mutating func update(now: MediaTime) {
        guard !limits.isEmpty || limit != nil else { return }
        limits.removeAll { $0.until <= now }
        let next = limits.map(\.rate).filter { $0 > 0 || !isNeeded }.min()
        guard next != limit else { return }
        let (from, to) = (Double(limit ?? .max), Double(next ?? .max))
        if to > from {
            // A limit above the wish limits nothing.
            let isHeld = most > 0 && from < Double(most)
            if isHeld, let changed, now - changed < Self.patience { return }
        } else if to > from * (1 - Self.change) {
            return
        }
        limit = next
        changed = now
    }

    /// A frame was encoded with so many bytes.
    mutating func encoded(bytes: Int) { excess += Double(bytes) * 8 }

    /// Whether to encode the next frame.
    /// - Parameter timestamp: in nanoseconds, so that the account does not depend on the speed of the machine
    mutating func admitsFrame(at timestamp: UInt64) -> Bool {
        let elapsed = newest.map { timestamp > $0 ? Double(timestamp - $0) / 1e9 : 0 } ?? 0
        newest = timestamp
        isExceeding = false
        var allowed = Double.infinity
        if let limit, limit < most {
            excess = max(0, min(excess, Double(limit) * Self.mostExcess) - Double(limit) * elapsed * Self.tolerance)
            allowed = Double(limit) * Self.longestExcess
        } else {
            excess = 0
        }
        let share = frameShare
        guard share < 1 || allowed < .infinity else {
            credit = 0
            return true
        }
        credit = min(credit + share, 1 + share)
        guard share > 0, credit >= 1 - 1e-9 else { return false }
        isExceeding = excess > allowed
        guard !isExceeding else { return false }
        credit -= 1
        return true
    }
}

import MediaGraph

/// Bitrate, frame rate and frame size of an encoder: what its wish, the limits of its consumers and its processor leave.
///
/// A value that is told the time. Limits last by the machine's clock; everything else goes by the timestamps of the frames.
struct EncoderQuality: Sendable {
    /// The longest time between two frames that counts, because the timestamps of a source may jump.
    private static let longestStep: UInt64 = 1_000_000_000
    /// Of frames whose format has none.
    private static let usualRate = 30.0
    /// The change that counts, and the bounds.
    private static let paceChange = 0.1
    private static let paces = 0.1...2.0

    /// The properties of the element.
    struct Target: Sendable, Equatable {
        /// In bits per second. 0 before the wish is known.
        var bitrate: Int
        var frameShare: Double
        /// How many of the frames that are not skipped on purpose enter the encoder, relative to the rate of their format.
        var pace = 1.0
        /// Nil for the size of the source.
        var size: Size?
        var step: VideoAdaptation.Step?
    }

    struct Size: Sendable, Hashable {
        var width: Int
        var height: Int
    }

    /// The bitrate set by the application. Nil while the table decides.
    var chosen: Bitrate?
    /// The table's bitrate for the arriving size and rate. Nil before the first frame.
    var usual: Bitrate?
    /// The bitrate without a limit, at full size. 0 before it is known.
    private(set) var wish = 0
    private var rate = EncoderRate()
    /// Rests if the size cannot change: it then notices overload alone.
    private var adaptation: VideoAdaptation
    private let isScalable: Bool
    /// The step of the frame that is being encoded, or was last.
    private var encoding = VideoAdaptation.Step()
    /// The policy of the node's setting. Nil leaves it to the consumers.
    private var chosenPolicy: Degradation?
    private let usualPolicy: Degradation
    private var source = (size: Size(width: 0, height: 0), framesPerSecond: Double?.none)
    /// The time of the frames.
    private var time = MediaTime(nanoseconds: 0)
    private var newest: UInt64?
    /// The time between arriving frames, in nanoseconds. The pace follows from it and from `frameStep`: the frames for each one
    /// that enters the encoder, with those that were dropped before it because the encoder was busy.
    private var interval = MeanSpacing(usual: 1e9 / Self.usualRate)
    private var frameStep = MeanSpacing(usual: 1)
    private var pace = 1.0
    /// When the frame that is being encoded entered the encoder.
    private var entered: MediaTime?
    /// Whether nothing is encoded without a consumer that wants it, apart from requested keyframes.
    private let isOnDemand: Bool
    /// Whether a keyframe was requested and is not encoded yet. The first frame shows that the encoder works.
    private var owesKeyframe: Bool
    /// Until when a consumer without a limit needs the video, in the time of the frames, and whether one always does.
    private var neededUntil: MediaTime?
    private let isNeeded: Bool

    /// - Parameters:
    ///   - usualPolicy: applies if neither the node nor a consumer has a policy.
    ///   - isOnDemand: whether nothing is encoded without a limit of a consumer above 0.
    ///   - isNeeded: whether a consumer without a limit needs the video, so that a limit of 0 does not count.
    init(
        chosen: Bitrate?, isScalable: Bool, policy: Degradation?, usualPolicy: Degradation, isOnDemand: Bool = false,
        isNeeded: Bool = false
    ) {
        self.chosen = chosen
        (self.isOnDemand, owesKeyframe) = (isOnDemand, isOnDemand)
        (chosenPolicy, self.usualPolicy) = (policy, usualPolicy)
        self.isScalable = isScalable
        self.isNeeded = isNeeded
        rate.isNeeded = isNeeded
        adaptation = VideoAdaptation(policy ?? usualPolicy)
        adaptation.rest(!isScalable)
    }

    var target: Target {
        let size = adaptation.size.map { Size(width: $0.width, height: $0.height) }
        return Target(
            bitrate: rate.bitrate, frameShare: rate.frameShare, pace: pace, size: size, step: adaptation.current)
    }

    private var limitation: QualityLimitation {
        if adaptation.isLimitedByProcessor { return .processor }
        return adaptation.isLimited || rate.limit.map { $0 < wish } ?? false ? .network : .none
    }

    /// Whether no consumer wants the video at present.
    var isResting: Bool { rate.limit == 0 || isOnDemand && rate.limit == nil }

    /// The share of the time that encoding takes, as of the newest seconds, and whether that is too much.
    var load: Double { isResting ? 0 : adaptation.load }
    var isOverloaded: Bool { !isResting && adaptation.isOverloaded }

    /// The share of the frames that is encoded for long.
    private var frames: Double {
        adaptation.rests ? (rate.limit == 0 ? 1 : rate.frameShare) : adaptation.current.frames
    }

    /// The present size and rate.
    var quality: VideoQuality {
        let size = target.size ?? source.size
        return VideoQuality(
            width: size.width, height: size.height,
            framesPerSecond: source.framesPerSecond.map { $0 * frames },
            limitation: limitation, limitedBitsPerSecond: rate.limit)
    }

    // MARK: - Settings

    mutating func setWish(_ bitsPerSecond: Int) {
        wish = bitsPerSecond
        follow()
    }

    mutating func setSource(_ width: Int, _ height: Int, framesPerSecond: Double?) {
        let size = Size(width: width, height: height)
        guard size != source.size || framesPerSecond != source.framesPerSecond else { return }
        source = (size, framesPerSecond)
        let rate = framesPerSecond.flatMap { $0 > 0 ? $0 : nil } ?? Self.usualRate
        (interval, frameStep, pace) = (MeanSpacing(usual: 1e9 / rate), MeanSpacing(usual: 1), 1)
        adaptation.setSource(width: width, height: height, framesPerSecond: framesPerSecond)
        follow()
    }

    /// - Parameter policy: nil leaves it to the consumers.
    mutating func setPolicy(_ policy: Degradation?) {
        chosenPolicy = policy
        follow()
    }

    // MARK: - Consumers

    /// - Parameter keepsSize: whether the consumer gets the video in several sizes, and leaves out the largest ones itself.
    mutating func setLimit(
        _ bitsPerSecond: Int, by source: UInt64, policy: Degradation?, keepsSize: Bool = false, now: MediaTime
    ) {
        rate.setLimit(bitsPerSecond, by: source, policy: policy, keepsSize: keepsSize, now: now)
        follow()
    }

    /// A consumer needs a keyframe, which is encoded also if no consumer wants more.
    mutating func demandKeyframe() { owesKeyframe = isOnDemand || isResting }

    /// A consumer that cannot take another size got a frame. It has no limit, so those that want nothing do not count for some
    /// time.
    mutating func holdSize() {
        neededUntil = time + VideoAdaptation.hold
        adaptation.holdSize(encoding.size, now: time)
        follow()
    }

    // MARK: - Frames

    /// Whether to encode the next frame.
    mutating func admitsFrame(at timestamp: UInt64, now: MediaTime) -> Bool {
        rate.isNeeded = isNeeded || neededUntil.map { time < $0 } ?? false
        rate.update(now: now)
        let isAdmitted = rate.admitsFrame(at: timestamp)
        if let newest, timestamp > newest {
            let step = min(timestamp - newest, Self.longestStep)
            time.nanoseconds += step
            interval.add(Double(step))
            updatePace()
        }
        newest = timestamp
        if isResting, isOnDemand || owesKeyframe { return owesKeyframe }
        adaptation.captured(at: time, wish: wish, limit: rate.limit, isExceeding: rate.isExceeding)
        follow()
        return isAdmitted
    }

    /// A camera delivers fewer frames than its format says if it is dark, and a busy encoder takes fewer.
    private mutating func updatePace() {
        let newest = min(
            max(1 / (interval.relative * frameStep.relative), Self.paces.lowerBound), Self.paces.upperBound)
        // Each change costs the encoder a new setting.
        if abs(newest / pace - 1) > Self.paceChange { pace = newest }
    }

    /// A frame is about to enter the encoder, after so many were dropped because the encoder was busy. Returns the target
    /// for it.
    mutating func prepareFrame(after dropped: Int, now: MediaTime) -> Target {
        for _ in 0..<dropped { adaptation.dropped() }
        frameStep.add(Double(dropped + 1))
        updatePace()
        entered = now
        encoding = adaptation.current
        return target
    }

    mutating func encoded(bytes: Int, isKeyframe: Bool = false, now: MediaTime) {
        rate.encoded(bytes: bytes)
        if isKeyframe { owesKeyframe = false }
        if let entered { adaptation.encoded(in: now.seconds(since: entered)) }
        entered = nil
    }

    /// The need falls with the size. A smaller size still gets all bits that the network carries: an estimate of a network
    /// that is hardly used fails.
    private mutating func follow() {
        adaptation.setPolicy(chosenPolicy ?? rate.policy ?? usualPolicy)
        adaptation.rest(!isScalable || rate.keepsSize)
        let step = adaptation.current
        rate.mostFrames = step.frames
        rate.setWish(
            Int((Double(wish) * step.bitrate).rounded()),
            most: adaptation.isLimitedByNetwork
                ? wish : Int((Double(wish) * min(1, 2 * step.bitrate)).rounded()))
    }
}

/// The mean distance of frames. A gap hardly counts, because its bits would be paid out over the frames that follow, and after
/// a slow time, the usual distance is back soon.
private struct MeanSpacing: Sendable {
    /// The weight of the newest distance.
    private static let weight = 0.05
    /// A distance counts as this many means at most, and the mean is this many distances at most.
    private static let most = 2.0
    /// After so many distances in a row that are so much shorter than the mean, a slow time has ended.
    private static let (needed, shorter) = (4, 0.8)

    private let usual: Double
    private var mean: Double
    private var short = 0

    init(usual: Double) { (self.usual, mean) = (usual, usual) }

    /// The mean, as a multiple of the usual distance.
    var relative: Double { mean / usual }

    mutating func add(_ distance: Double) {
        short = distance <= mean * Self.shorter ? short + 1 : 0
        mean += (min(distance, mean * Self.most) - mean) * Self.weight
        let bound = short < Self.needed ? distance * Self.most : distance
        mean = min(mean, max(usual, bound))
    }
}

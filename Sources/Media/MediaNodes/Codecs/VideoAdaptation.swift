import MediaGraph

/// Decides in which size and at which share of its frames a video is encoded, from the bitrate that the network carries and
/// the time that encoding takes.
///
/// A policy is a list of steps from the best to the worst. Network and processor each allow a step, and the worse one
/// counts. A step falls after seconds and rises after longer, with a margin, and later each time that it falls again soon.
/// Time is that of the frames, so the decisions do not depend on the speed of the machine.
struct VideoAdaptation: Sendable {
    struct Step: Sendable, Hashable {
        /// Of width and height, in parts of 32.
        var size = VideoAdaptation.whole
        /// The share of the frames to encode.
        var frames = 1.0

        /// Of the source's width and height.
        private var scale: Double { Double(size) / Double(VideoAdaptation.whole) }
        /// The share of the source's bitrate for equal quality at all frames: pixels to the power of 3/4, as in
        /// docs/bitrates.md.
        var bitrate: Double { scale * scale.squareRoot() }
        /// The same at the step's frames, each of which keeps its bits.
        var need: Double { bitrate * frames }
        /// The share of the source's work.
        var work: Double { scale * scale * frames }
    }

    private struct Restriction: Sendable {
        private(set) var step = 0
        /// How long conditions must be better before the step rises.
        var patience: Duration
        let shortest: Duration
        let longest: Duration
        private var raised: MediaTime?
        /// Whether the step has risen since conditions were worse last.
        private(set) var isRising = false

        init(_ shortest: Duration, _ longest: Duration) {
            (patience, self.shortest, self.longest) = (shortest, shortest, longest)
        }

        mutating func fall(to step: Int, now: MediaTime) {
            let isRelapse = raised.map { now - $0 < VideoAdaptation.relapse } ?? false
            patience = isRelapse ? min(patience * 2, longest) : shortest
            (self.step, isRising) = (step, false)
        }

        mutating func reset(to step: Int = 0) { (self.step, isRising) = (step, false) }

        mutating func interrupt() { isRising = false }

        mutating func rise(to step: Int, now: MediaTime) {
            (self.step, raised, isRising) = (step, now, true)
        }
    }

    /// Frames of some seconds.
    private struct Window: Sendable {
        var start: MediaTime
        var frames = 0
        /// Skipped because the encoder had exceeded its limit.
        var exceeding = 0
        /// Dropped because the encoder was busy.
        var dropped = 0
        var busy = 0.0
    }

    /// The parts of a whole width, so that steps are exact.
    static let whole = 32
    /// 1, 3/4, 1/2, 3/8, 1/4, 3/16, 1/8 and 3/32, as libwebrtc scales.
    private static let sizes = [32, 24, 16, 12, 8, 6, 4, 3]
    /// No step has fewer pixels.
    private static let leastPixels = 160 * 90
    private static let frameShares = [1, 3.0 / 4, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 6]
    /// `balanced` keeps so many frames a second until the size is at its least.
    private static let leastRate = 10.0
    /// How long the network must carry too little.
    static let lapse = Duration.seconds(2)
    /// A rise needs a network that carries so much more than the step needs.
    static let margin = 1.3
    /// While conditions stay good, further rises come this soon after one another.
    static let climb = Duration.seconds(2)
    /// A network that carries so many times as much as when the step fell is another one: earlier falls say nothing about it.
    static let another = 2.0
    /// A step that falls so soon after it rose, rises later the next time.
    static let relapse = Duration.seconds(30)
    /// Frames are judged together.
    static let span = Duration.seconds(2)
    /// The processor is overloaded above this share of the time in two spans, and has room below the other one, if the better
    /// step is not expected to exceed the third.
    static let overload = 0.85
    static let underuse = 0.6
    private static let expected = 0.75
    /// Shares of a span's frames: dropped ones that show an overload, and skipped ones that show a scene of many bits.
    private static let droppedShare = 0.15
    private static let exceedingShare = 0.33
    private static let mostComplexity = 3.0
    /// An encoder needs so long to follow a limit that has fallen.
    static let response = Duration.seconds(2)
    /// After so many spans without an excess, the scene counts as half as complex.
    private static let calmSpans = 5
    /// After nothing could be sent, the estimate of the network needs so long until it is true again.
    static let recovery = Duration.seconds(6)
    /// A step that fell after that returns this soon, for half a minute.
    static let homecoming = Duration.seconds(1)
    /// How long a consumer that cannot take another size keeps the present one.
    static let hold = Duration.seconds(5)

    private(set) var policy: Degradation
    private var width = 0
    private var height = 0
    private var framesPerSecond = 30.0
    private var steps = [Step()]
    private var network = Restriction(.seconds(5), .seconds(40))
    private var processor = Restriction(.seconds(10), .seconds(160))
    /// Since when the network carries too little, and the most that it has carried since.
    private var lack: (since: MediaTime, most: Double)?
    /// Since when it carries enough for a better step, and the least that it has carried since.
    private var surplus: (since: MediaTime, least: Double)?
    /// The rate that it carried when the step fell last.
    private var carriedAtFall = Double.infinity
    /// Whether nothing can be sent, when that ended last, and the step before.
    private var isBlocked = false
    private var unblocked: (at: MediaTime, step: Int)?
    /// How much more bits the scene needs than others.
    private var complexity = 1.0
    private var calm = 0
    /// The spans in a row with too many bits, the newest limit, and when it fell last.
    private var excesses = 0
    private var newestRoom = Double.infinity
    private var fell: MediaTime?
    private var window: Window?
    private var overloads = 0
    private var idle: MediaTime?
    private var heldUntil: MediaTime?
    private var isHeld = false
    /// Whether size and frames stay whole, because the consumer has other sizes of the video. Only overload is noticed.
    private(set) var rests = false
    /// The share of the time that encoding took in the newest span.
    private(set) var load = 0.0
    /// The step that is in effect.
    private(set) var current = Step()

    init(_ policy: Degradation) { self.policy = policy }

    /// Sets the format of the arriving frames.
    mutating func setSource(width: Int, height: Int, framesPerSecond: Double?) {
        (self.width, self.height) = (width, height)
        self.framesPerSecond = framesPerSecond ?? 30
        rebuild()
    }

    mutating func setPolicy(_ policy: Degradation) {
        guard policy != self.policy else { return }
        self.policy = policy
        rebuild()
    }

    /// - Parameter rests: whether size and frames stay whole.
    mutating func rest(_ rests: Bool) {
        guard rests != self.rests else { return }
        self.rests = rests
        network.reset()
        processor.reset()
        (lack, surplus) = (nil, nil)
        settle()
    }

    /// Whether encoding takes too much time for long.
    var isOverloaded: Bool { overloads >= 2 }

    /// The size to encode. Nil for that of the source.
    var size: (width: Int, height: Int)? {
        guard current.size < Self.whole, width > 0, height > 0 else { return nil }
        return (Self.scaled(width, current.size), Self.scaled(height, current.size))
    }

    /// Whether the network alone allows less than the source's quality.
    var isLimitedByNetwork: Bool { network.step >= processor.step && network.step > 0 }
    /// Whether the processor allows less than the network.
    var isLimitedByProcessor: Bool { processor.step > network.step }
    var isLimited: Bool { current != Step() }

    private static func scaled(_ pixels: Int, _ size: Int) -> Int { max(2, pixels * size / whole / 2 * 2) }

    // MARK: - Steps

    private mutating func rebuild() {
        let (former, old) = (steps, (network.step, processor.step))
        steps = Self.steps(policy, width, height, framesPerSecond)
        func step(like step: Int) -> Int {
            steps.firstIndex { $0.need <= former[step].need + 1e-9 } ?? steps.count - 1
        }
        network.reset(to: step(like: old.0))
        processor.reset(to: step(like: old.1))
        (lack, surplus, window) = (nil, nil, nil)
        settle()
    }

    static func steps(_ policy: Degradation, _ width: Int, _ height: Int, _ framesPerSecond: Double) -> [Step] {
        let sizes = sizes.filter {
            $0 == whole || scaled(width, $0) * scaled(height, $0) >= leastPixels
        }
        switch policy {
        case .detail: return frameShares.map { Step(frames: $0) }
        case .motion:
            let least = sizes[sizes.count - 1]
            return sizes.map { Step(size: $0) } + frameShares.dropFirst().map { Step(size: least, frames: $0) }
        case .balanced: return balanced(sizes, framesPerSecond)
        }
    }

    /// Frame rate and size in turn, the frame rate first.
    private static func balanced(_ sizes: [Int], _ framesPerSecond: Double) -> [Step] {
        var steps = [Step()]
        var (size, frames, isRateNext) = (0, 0, true)
        while size + 1 < sizes.count || frames + 1 < frameShares.count {
            let isLeast = size + 1 == sizes.count
            let keepsRate =
                frames + 1 == frameShares.count || framesPerSecond * frameShares[frames + 1] < leastRate
            if isLeast || (isRateNext && !keepsRate) { frames += 1 } else { size += 1 }
            isRateNext.toggle()
            steps.append(Step(size: sizes[size], frames: frameShares[frames]))
        }
        return steps
    }

    // MARK: - Frames

    /// A frame was captured.
    ///
    /// - Parameters:
    ///   - wish: the bitrate at full size and rate.
    ///   - limit: the bitrate that the network carries; nil without a limit.
    ///   - isExceeding: whether it is skipped because the encoder has exceeded its limit.
    mutating func captured(at now: MediaTime, wish: Int, limit: Int?, isExceeding: Bool = false) {
        window = window ?? Window(start: now)
        window?.frames += 1
        if isExceeding, fell.map({ now - $0 >= Self.response }) ?? true { window?.exceeding += 1 }
        isHeld = heldUntil.map { now < $0 } ?? false
        if isHeld { return }
        let room = limit.map(Double.init) ?? .infinity
        if room < newestRoom * 0.95 { fell = now }
        newestRoom = room
        if let seen = window, now - seen.start >= Self.span {
            window = Window(start: now)
            judge(seen, wish: Double(wish), room: room, now: now)
        }
        guard !rests else { return }
        followNetwork(wish: Double(wish), room: room, now: now)
        settle()
    }

    /// A captured frame was dropped, because the encoder was busy.
    mutating func dropped() { window?.dropped += 1 }

    /// A frame took so many seconds to encode.
    mutating func encoded(in seconds: Double) { window?.busy += seconds }

    /// A consumer that cannot take another size got a frame of this one.
    mutating func holdSize(_ size: Int, now: MediaTime) {
        (heldUntil, isHeld) = (now + Self.hold, true)
        current = Step(size: size)
    }

    private mutating func settle() {
        let step = steps[max(network.step, processor.step)]
        guard !isHeld, step != current else { return }
        current = step
        // The frames of the former step say nothing about this one.
        (window, overloads, excesses, idle) = (nil, 0, 0, nil)
    }

    // MARK: - Network

    /// The first step for which the network carries enough.
    private func step(for room: Double, wish: Double, margin: Double = 1) -> Int {
        let most = room / (wish * EncoderRate.leastShare * complexity * margin)
        return steps.firstIndex { $0.need <= most + 1e-9 } ?? steps.count - 1
    }

    private mutating func followNetwork(wish: Double, room: Double, now: MediaTime) {
        // While nothing can be sent, nothing is known about the time after.
        guard room > 0, wish > 0 else {
            if room <= 0 { isBlocked = true }
            return (lack, surplus) = (nil, nil)
        }
        if isBlocked {
            let former = unblocked.map { now - $0.at < Self.relapse ? $0.step : network.step } ?? network.step
            (isBlocked, unblocked) = (false, (now, min(former, network.step)))
        }
        if let unblocked, now - unblocked.at >= Self.relapse { self.unblocked = nil }
        let wanted = step(for: room, wish: wish)
        if wanted > network.step {
            surplus = nil
            network.interrupt()
            let (since, most) = (lack?.since ?? now, max(lack?.most ?? room, room))
            lack = (since, most)
            if let unblocked, now - unblocked.at < Self.recovery { return }
            guard now - since >= Self.lapse else { return }
            network.fall(to: step(for: most, wish: wish), now: now)
            (lack, carriedAtFall) = (nil, most)
        } else {
            lack = nil
            guard step(for: room, wish: wish, margin: Self.margin) < network.step else {
                network.interrupt()
                return surplus = nil
            }
            let (since, least) = (surplus?.since ?? now, min(surplus?.least ?? room, room))
            surplus = (since, least)
            guard now - since >= patience(least: least) else { return }
            // Half of the way at a time: what the network carries is known best as far as it is used.
            let allowed = step(for: least, wish: wish, margin: Self.margin)
            network.rise(to: network.step - max(1, (network.step - allowed + 1) / 2), now: now)
            surplus = nil
        }
    }

    /// How long the network has to carry enough for a better step.
    private func patience(least: Double) -> Duration {
        if unblocked.map({ network.step > $0.step }) ?? false { return Self.homecoming }
        if network.isRising { return Self.climb }
        return least >= carriedAtFall * Self.another ? network.shortest : network.patience
    }

    // MARK: - Spans of frames

    private mutating func judge(_ seen: Window, wish: Double, room: Double, now: MediaTime) {
        if !rests { judgeScene(seen, wish: wish, room: room) }
        judgeProcessor(seen, now: now)
    }

    /// A scene may need more bits than the step has at the encoder's worst quality.
    private mutating func judgeScene(_ seen: Window, wish: Double, room: Double) {
        if room > 0, room < wish, Double(seen.exceeding) >= Double(seen.frames) * Self.exceedingShare {
            (excesses, calm) = (excesses + 1, 0)
            guard excesses >= 2 else { return }
            let need = wish * EncoderRate.leastShare * steps[network.step].need
            complexity = min(Self.mostComplexity, max(complexity, room / need) * 1.1)
            excesses = 0
            return
        }
        excesses = 0
        calm += 1
        guard calm >= Self.calmSpans else { return }
        calm = 0
        complexity = 1 + (complexity - 1) / 2
        if complexity < 1.05 { complexity = 1 }
    }

    private mutating func judgeProcessor(_ seen: Window, now: MediaTime) {
        let usage = seen.busy / max(0.001, now.seconds(since: seen.start))
        load = usage
        let isOverloaded = usage > Self.overload || Double(seen.dropped) > Double(seen.frames) * Self.droppedShare
        let step = max(network.step, processor.step)
        if isOverloaded {
            (overloads, idle) = (overloads + 1, nil)
            guard !rests, overloads >= 2, step + 1 < steps.count else { return }
            processor.fall(to: step + 1, now: now)
            return
        }
        overloads = 0
        guard processor.step > 0, usage < Self.underuse, seen.dropped == 0,
            usage * steps[processor.step - 1].work / steps[step].work < Self.expected
        else { return idle = nil }
        let since = idle ?? seen.start
        idle = since
        guard now - since >= processor.patience else { return }
        processor.rise(to: processor.step - 1, now: now)
        idle = nil
    }
}

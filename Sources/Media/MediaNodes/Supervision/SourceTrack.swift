import GStreamerKit
import MediaGraph

/// The frames that stand in for those of a device.
enum StandIn: Sendable {
    /// The last frame, of encoded video the last keyframe; the slate before the first one.
    case freeze(slate: Slate?)
    case slate(Slate)
    case silence(Silence)

    enum Silence: Sendable {
        /// Of raw audio between nodes.
        case raw
        /// The frame is repeated.
        case encoded(EncodedSilence)
        /// That of the encoding is not known, so nothing plays.
        case unknown
    }

    /// That of the setting `away` for the output `video`. Without an encoder, there is no slate for encoded video.
    init(videoOf instance: NodeInstance) {
        let format = instance.plan.formats["video"] ?? .rawVideo()
        let elements = instance.plan.device?.slate ?? []
        if format.kind == .encodedVideo, elements.isEmpty {
            self = .freeze(slate: nil)
        } else {
            let slate = Slate(format, elements, named: instance.prefix, on: instance.pipeline.clock)
            self = instance.text("away") == "slate" ? .slate(slate) : .freeze(slate: slate)
        }
    }

    var slate: Slate? {
        switch self {
        case .freeze(let slate): slate
        case .slate(let slate): slate
        case .silence: nil
        }
    }

    var isSilence: Bool { if case .silence = self { true } else { false } }
}

/// One output of a source: its element, and the media that leaves it. Timestamps are in nanoseconds of the pipeline's time.
///
/// A value that its head guards. Pushing does not block.
struct SourceTrack: Sendable {
    /// Frames that follow a stand-in of the same time are moved by so much.
    private static let step: UInt64 = 1_000_000
    /// Nanoseconds of one sample, and bytes of it for both channels.
    private static let (sampleTime, sampleBytes): (UInt64, Int) = (1_000_000_000 / 48_000, 4)
    /// Audio may begin so much after the end of the audio before it. A longer gap after a stand-in is filled.
    private static let gap: UInt64 = 5_000_000
    /// The longest silence that is pushed at once.
    private static let longestSilence: UInt64 = 1_000_000_000
    /// Audio that its device delivers late is not taken for missing within this time.
    private static let lateness: UInt64 = 500_000_000
    /// Audio of a device that delivers video is missing after this time without any.
    private static let longestPause: UInt64 = 1_000_000_000
    /// Between stand-ins of encoded video, if those of audio come more often.
    private static let pictureInterval: UInt64 = 950_000_000
    /// The shortest time between two requests for a keyframe, in seconds.
    private static let askInterval = 0.5
    /// The assumed length of encoded audio that does not state it.
    private static let soundWithoutLength: UInt64 = 20_000_000

    /// How much encoded video may wait. Beyond it, frames are dropped up to the next keyframe.
    struct Capacity: Sendable {
        var frames = PushQueue.encodedLimits.frames ?? .max
        var bytes = Int.max

        var limits: QueuePlan.Limits {
            QueuePlan.Limits(frames: frames, bytes: bytes == .max ? nil : bytes, rule: .dropToKeyframe)
        }
    }

    let source: PushSource
    private(set) var standIn: StandIn
    private let capacity: Capacity
    /// Nil for media whose frames do not depend on each other.
    private(set) var repeater: (any StreamRepeater)?
    private let codec: Encoding?
    /// The timestamp of the last frame, or the end of the last audio.
    private(set) var lastTime: UInt64?
    /// Whether that was a stand-in.
    private(set) var isStandIn = false
    /// When the last stand-ins began, and the time of the device's first frame after them.
    private var absence: (begin: UInt64, end: UInt64?)?
    /// The last frame of the device. Not kept of video with a repeater.
    private var last: MediaBuffer?
    /// Whether the device has delivered since it was opened.
    private var hasArrived = false
    /// How many frames at most come before one that is displayed before them, as of the last keyframe.
    private var reordered = 0
    private var decodeTimes = DecodeTimes()
    /// When the device last delivered audio, by the pipeline's time.
    private var heard: UInt64?
    /// The timestamp of the device's last audio.
    private var lastSound: UInt64?
    private var askedAt: MediaTime?
    /// Frames that stood in for those of the device.
    private(set) var standIns = 0
    /// The promised format, and the present one.
    private let promised: Caps?
    private var format: Caps?

    init(_ source: PushSource, _ format: MediaFormat?, _ standIn: StandIn, _ capacity: Capacity) {
        (self.source, self.standIn, self.capacity) = (source, standIn, capacity)
        promised = source.format
        codec = format.flatMap { Encoding.named($0.encoding) }
        repeater = codec?.repeater
        repeater?.interrupt()
    }

    /// Whether the queue of encoded frames is full.
    private var isFull: Bool {
        source.waiting >= capacity.frames || capacity.bytes < .max && source.waitingBytes >= capacity.bytes
    }

    /// The device is being opened again.
    mutating func open() {
        hasArrived = false
        repeater?.restart()
    }

    /// Frames of the device were left out.
    mutating func interrupt() { repeater?.interrupt() }

    /// The device closes, or may need its memory back.
    mutating func release() { last = last?.copied }

    /// Forgets the last frame, and returns it.
    mutating func forget() -> MediaBuffer? {
        defer { last = nil }
        return last
    }

    /// Whether to ask the device for a keyframe now. Records the request.
    mutating func asks() -> Bool {
        let now = GStreamer.now
        if let askedAt, now.seconds(since: askedAt) < Self.askInterval { return false }
        askedAt = now
        return true
    }

    // MARK: Frames of the device

    /// The fate of a frame.
    struct Passed {
        /// The frame that this one replaces. Released after the head's lock, because that may call a driver.
        var former: MediaBuffer?
        var isPushed = false
        /// Dropped up to the next keyframe.
        var isDropped = false
    }

    /// Passes a frame on that was captured at `start`, later than the one before.
    mutating func pass(_ frame: MediaBuffer, at start: UInt64) -> Passed {
        // A description may not state the configuration of AAC.
        if !hasArrived, standIn.isSilence, codec?.name == "aac", let silence = EncodedSilence(adts: frame.bytes) {
            standIn = .silence(.encoded(silence))
        }
        hasArrived = true
        guard case .silence(let silence) = standIn else {
            return repeater == nil ? pass(picture: frame, at: start) : pass(encoded: frame, at: start)
        }
        return Passed(isPushed: pass(sound: frame, at: start, silence))
    }

    private mutating func pass(picture frame: MediaBuffer, at start: UInt64) -> Passed {
        standIn.slate?.hide()
        let timestamp = later(start)
        use(frame.format)
        let isPushed = source.push(frame, timestamp: timestamp)
        if isPushed { note(timestamp) }
        defer { last = frame }
        return Passed(former: last, isPushed: isPushed)
    }

    /// Passes a frame of encoded video on, unless receivers lack a frame on which it depends.
    private mutating func pass(encoded frame: MediaBuffer, at start: UInt64) -> Passed {
        let isFull = isFull
        if isFull { repeater?.interrupt() }
        let bytes = frame.bytes
        let isKeyframe = codec?.isKeyframe(bytes) ?? true
        if isKeyframe { reordered = codec?.reorderedFrames(asOf: bytes) ?? reordered }
        let isReordered = reordered > 0
        // Frames in another order cannot be moved one by one: they begin with a keyframe after the stand-in, and after the
        // frames of a connection whose clock was ahead. No keyframe is displayed before frames that precede it.
        let isTooEarly = isReordered && (isStandIn || isKeyframe) && lastTime.map { start <= $0 } ?? false
        if isTooEarly { repeater?.interrupt() }
        let passing = isFull || isTooEarly ? .dropped : repeater?.pass(bytes) ?? .unchanged
        if passing == .dropped { return Passed(isDropped: true) }
        standIn.slate?.hide()
        let timestamp = isReordered ? start : later(start)
        let decoded = decodeTimes.next(displayedAt: timestamp, reordered: reordered)
        let isPushed =
            if case .changed(let bytes) = passing {
                source.push(bytes.span.bytes, timestamp: timestamp, decodedAt: decoded)
            } else {
                source.push(frame, timestamp: timestamp, decodedAt: decoded, isKeyframe: isKeyframe)
            }
        if isPushed { note(max(timestamp, lastTime ?? 0)) }
        return Passed(isPushed: isPushed)
    }

    /// Passes audio on that continues where the former audio ended.
    private mutating func pass(sound frame: MediaBuffer, at start: UInt64, _ silence: StandIn.Silence) -> Bool {
        if isStandIn, let last = lastTime, start > last + Self.gap { _ = play(silenceUntil: start) }
        // Former audio has taken this time already.
        var isRaw = false
        if case .raw = silence { isRaw = true }
        if isStandIn || isRaw, let last = lastTime, start + Self.gap < last { return false }
        // The length of encoded audio is not certain. Times of a network camera run back when its first packets were late.
        if !isRaw, let lastSound, start < lastSound { return false }
        guard source.push(frame, timestamp: start) else { return false }
        lastSound = start
        let length =
            switch silence {
            case .raw: UInt64(frame.byteCount / Self.sampleBytes) * Self.sampleTime
            case .encoded(let silence): frame.duration ?? silence.duration
            case .unknown: frame.duration ?? Self.soundWithoutLength
            }
        note(start + length)
        return true
    }

    /// Whether the frame of a time stood in for one of the device. Knows the last absence only.
    func isStandIn(at time: UInt64) -> Bool {
        guard let absence, time >= absence.begin else { return false }
        return absence.end.map { time < $0 } ?? true
    }

    private mutating func note(_ time: UInt64, isStandIn: Bool = false) {
        if isStandIn, !self.isStandIn { absence = (time, nil) }
        if !isStandIn, self.isStandIn { absence?.end = time }
        (lastTime, self.isStandIn) = (time, isStandIn)
        if isStandIn { standIns += 1 }
    }

    /// Sets the format of the next frame; nil for the promised one.
    private mutating func use(_ format: Caps?) {
        guard format !== self.format else { return }
        self.format = format
        if let caps = format ?? promised { source.setFormat(caps) }
    }

    private func later(_ time: UInt64) -> UInt64 { lastTime.map { max(time, $0 + Self.step) } ?? time }

    // MARK: Stand-ins

    /// Pushes a stand-in for the time up to `now`. Returns whether something was pushed.
    mutating func fill(at now: UInt64, isLead: Bool, interval: Double) -> Bool {
        let slate: MediaBuffer?
        switch standIn {
        case .freeze(let frame):
            slate = last == nil && repeater?.hasKeyframe != true ? frame.flatMap(Self.shown) : nil
        case .slate(let frame): slate = Self.shown(frame)
        case .silence:
            if !isLead, hasArrived { return keepUp(at: now) }
            return play(silenceUntil: lastTime == nil ? max(now, UInt64(interval * 1e9)) : now)
        }
        let timestamp = later(now)
        let isPushed: Bool
        if repeater != nil {
            if isStandIn, let last = lastTime, interval < 0.9, now < last + Self.pictureInterval { return false }
            guard !isFull, let frame = keyframe(orSlate: slate) else { return false }
            let decoded = decodeTimes.next(displayedAt: timestamp, reordered: 0)
            isPushed = source.push(frame.span.bytes, timestamp: timestamp, decodedAt: decoded)
        } else {
            if !isStandIn { release() }
            guard let frame = slate ?? last else { return false }
            use(frame.format)
            isPushed = source.repeat(frame, timestamp: timestamp)
        }
        if isPushed { note(timestamp, isStandIn: true) }
        return isPushed
    }

    /// Plays silence if audio stays away while the device delivers video. Returns whether something was pushed.
    mutating func keepUp(at now: UInt64) -> Bool {
        guard standIn.isSilence else { return false }
        guard let heard else {
            heard = now
            return false
        }
        return now > heard + Self.longestPause && play(silenceUntil: now - Self.lateness)
    }

    /// The device has delivered audio, which may have an earlier time.
    mutating func hear(at now: UInt64) { heard = now }

    /// Pushes silence from the end of the last audio on.
    private mutating func play(silenceUntil end: UInt64) -> Bool {
        let silence: EncodedSilence?
        switch standIn {
        case .silence(.encoded(let frame)): silence = frame
        case .silence(.raw): silence = nil
        case .silence(.unknown), .freeze, .slate: return false
        }
        let first = lastTime ?? end - min(end, 20_000_000)
        guard end > first else { return false }
        // After a machine stood still, nobody hears what was missed.
        var start = max(first, end - min(end, Self.longestSilence))
        guard let silence else {
            let samples = Int((end - start) / Self.sampleTime)
            guard (try? source.push(samples: samples * 2, timestamp: start) { _ in }) == true else { return false }
            note(start + UInt64(samples) * Self.sampleTime, isStandIn: true)
            return true
        }
        var isPushed = false
        while start + silence.duration <= end + Self.gap,
            source.push(silence.frame.span.bytes, timestamp: start, duration: silence.duration)
        {
            start += silence.duration
            note(start, isStandIn: true)
            isPushed = true
        }
        return isPushed
    }

    /// The frame that stands in for one of encoded video. Nil before the first keyframe and without a slate.
    private mutating func keyframe(orSlate slate: MediaBuffer?) -> [UInt8]? {
        if let slate, repeater?.hasSlate == false { _ = repeater?.show(slate: slate.bytes) }
        return repeater?.standIn()
    }

    private static func shown(_ slate: Slate) -> MediaBuffer? {
        slate.show()
        return slate.frame
    }
}

extension Encoding {
    /// Whether a frame is marked as a keyframe.
    fileprivate func isKeyframe(_ frame: [UInt8]) -> Bool {
        name == "h265"
            ? WholeFrameRepeater.isKeyframe(h265: frame) : EncodedHeader.isKeyframe(frame.span.bytes, encoding: name)
    }
}

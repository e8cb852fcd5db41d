import MediaGraph

/// Decides where a recording begins, which frames are dropped while the disk is too slow, and when a silent stream is
/// ended. Works only with running times, in nanoseconds.
///
/// A recording begins at a keyframe, which gets the time zero, with the audio from there on. An MP4 does not store how
/// much later one stream began, so its keyframe is one after the first audio. A container waits for the stream that
/// lags behind: a stream that never arrives, or stops, would stop the recording, and is ended instead. Audio waits for
/// the first frame; if there is none, the recording begins without video.
struct RecordingGate: Sendable {
    /// The decision on one encoded buffer.
    struct Decision: Equatable, Sendable {
        /// Whether it is recorded.
        var takes = false
        /// Whether the recording begins: the time of this buffer becomes zero.
        var begins = false
        /// Whether to request a keyframe from the encoder.
        var asksForKeyframe = false
        /// Whether the other stream has been silent for too long and must be ended.
        var endsOtherSide = false
    }

    /// How full a queue is.
    enum Room: Sendable {
        /// At most half full.
        case enough
        case little
        case none
    }

    /// How long the recording waits for a stream that has not begun.
    static let limitAtStart: UInt64 = 3_000_000_000
    /// How long it waits for a stream that has stopped.
    static let limit: UInt64 = 10_000_000_000
    /// Streams that stop within this time of each other, and stay away for longer, have the same cause.
    static let pause: UInt64 = 2_000_000_000
    /// After how long a keyframe that did not arrive is requested again.
    private static let askAgain: UInt64 = 500_000_000
    /// The longest distance between keyframes, so that a player can seek in the recording.
    static let longestDistance: UInt64 = 10_000_000_000
    /// Half a packet of Opus.
    private static let halfPacket: UInt64 = 10_000_000

    private struct Side {
        var isUsed: Bool
        var first: UInt64?
        var last: UInt64?
        /// When it returned from a pause of both streams.
        var returned: UInt64?

        mutating func came(_ time: UInt64, beside other: Side) {
            if let last, let otherLast = other.last, time > last + RecordingGate.pause,
                max(last, otherLast) <= min(last, otherLast) + RecordingGate.pause
            {
                returned = time
            }
            if first == nil { first = time }
            last = max(last ?? time, time)
        }
    }

    private var video: Side
    private var audio: Side
    private let keepsOffsets: Bool
    /// After how long the next keyframe is requested.
    private let distance: UInt64
    private var lastKeyframe: UInt64 = 0
    /// The time of the first audio that left its queue as a part of the recording.
    private(set) var firstSound: UInt64?
    private var lastAsked: UInt64?
    private var isOverflowing = false
    /// The time that became zero.
    private(set) var origin: UInt64?
    /// The end of the last recorded frame, if it lasts as long as the frame before it; nil before the first.
    private(set) var end: UInt64?
    /// Frames dropped because the queue was full.
    private(set) var droppedPictures = 0

    /// `keepsOffsets`: whether the container stores how much later one stream began than the other. `segment`: the
    /// length of its segments, each of which begins at a keyframe.
    init(hasVideo: Bool, hasAudio: Bool, keepsOffsets: Bool, segment: UInt64? = nil) {
        video = Side(isUsed: hasVideo)
        audio = Side(isUsed: hasAudio)
        self.keepsOffsets = keepsOffsets
        distance = segment ?? Self.longestDistance
    }

    /// Decides on an encoded frame.
    mutating func picture(at time: UInt64, isKeyframe: Bool, room: Room) -> Decision {
        guard video.isUsed else { return Decision() }
        let step = video.last.map { time > $0 ? time - $0 : 0 } ?? 0
        video.came(time, beside: audio)
        var decision = Decision(endsOtherSide: gives(up: \.audio, at: time, beside: video))
        guard origin != nil else {
            begin(at: time, isKeyframe, &decision)
            return decision
        }
        if room == .none { isOverflowing = true }
        if isOverflowing, isKeyframe, room == .enough { isOverflowing = false }
        decision.takes = !isOverflowing
        if decision.takes, step > 0 { end = time + step }
        if isOverflowing {
            droppedPictures += 1
            decision.asksForKeyframe = room == .enough && asks(at: time)
        } else if isKeyframe {
            lastKeyframe = time
        } else if time + step >= lastKeyframe + distance {
            // The encoder makes the next frame a keyframe, so a segment has the intended length.
            decision.asksForKeyframe = asks(at: time)
        }
        return decision
    }

    private mutating func begin(at time: UInt64, _ isKeyframe: Bool, _ decision: inout Decision) {
        let isReady = keepsOffsets || !audio.isUsed || audio.first.map { $0 <= time + Self.halfPacket } ?? false
        guard isReady else { return }
        if isKeyframe {
            origin = time
            lastKeyframe = time
            decision.takes = true
            decision.begins = true
        } else {
            decision.asksForKeyframe = asks(at: time)
        }
    }

    private mutating func asks(at time: UInt64) -> Bool {
        if let lastAsked, time < lastAsked + Self.askAgain { return false }
        lastAsked = time
        return true
    }

    /// Decides on encoded audio. If there is video, audio is queued and waits for its start.
    mutating func sound(at time: UInt64) -> Decision {
        audio.came(time, beside: video)
        guard audio.isUsed else { return Decision() }
        var decision = Decision(takes: true)
        if video.isUsed {
            if origin == nil, let first = audio.first, time > first + Self.limit {
                video.isUsed = false
                origin = first
                decision.begins = true
                decision.endsOtherSide = true
            } else {
                decision.endsOtherSide = origin != nil && gives(up: \.video, at: time, beside: audio)
            }
        } else if origin == nil {
            origin = time
            decision.begins = true
        }
        return decision
    }

    /// Decides on audio that leaves its queue: whether it belongs to the recording, and, for the first that does, the
    /// time that becomes its zero.
    mutating func soundLeaves(at time: UInt64) -> (takes: Bool, begins: UInt64?) {
        guard let origin else { return (false, nil) }
        if let firstSound { return (time >= firstSound, nil) }
        let isPlaced = keepsOffsets || !video.isUsed
        // Keeps the offset small that the container does not store: the packet nearest to the first frame is the first.
        guard time + (isPlaced ? 0 : Self.halfPacket) >= origin else { return (false, nil) }
        firstSound = time
        return (true, isPlaced ? origin : time)
    }

    /// Whether the other stream has been silent long enough to be treated as absent. A pause of both, as of the network, counts
    /// for neither.
    private mutating func gives(up side: WritableKeyPath<RecordingGate, Side>, at time: UInt64, beside own: Side)
        -> Bool
    {
        guard self[keyPath: side].isUsed else { return false }
        let isOver =
            self[keyPath: side].last.map { time > max($0, own.returned ?? 0) + Self.limit }
            ?? (time > (own.first ?? time) + Self.limitAtStart)
        if isOver { self[keyPath: side].isUsed = false }
        return isOver
    }

    /// Whether any audio has arrived.
    var hasSound: Bool { audio.first != nil }

    /// A stream has ended.
    mutating func ended(_ stream: RecordedStream) {
        if stream == .video { video.isUsed = false } else { audio.isUsed = false }
    }
}

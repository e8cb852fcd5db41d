import MediaGraph

/// Decides where a recording begins, what is left out while the disk does not keep up, and when a side that has fallen
/// silent is given up. It knows times only: running times in nanoseconds.
///
/// A recording begins at a keyframe, which gets the time zero, with the sound from there on. An MP4 forgets by how much
/// one side began after the other; there the keyframe is one that comes after the first sound. A container waits for the
/// side that lags behind: one that never comes, or stops coming, would stop the recording, and is ended instead. The
/// sound waits for the first picture; where none comes, the recording begins without pictures.
struct RecordingGate: Sendable {
    /// What to do with a piece of encoded media that comes.
    struct Decision: Equatable, Sendable {
        /// Whether it is recorded.
        var takes = false
        /// The recording begins: the time that comes becomes zero.
        var begins = false
        /// The encoder is to be asked for a keyframe.
        var asksForKeyframe = false
        /// The other side has been silent for too long and is to be ended.
        var endsOtherSide = false
    }

    /// How full a queue is.
    enum Room: Sendable {
        /// At most half full.
        case enough
        case little
        case none
    }

    /// How long the recording waits for a side that has not begun.
    static let limitAtStart: UInt64 = 3_000_000_000
    /// How long it waits for a side that has stopped.
    static let limit: UInt64 = 10_000_000_000
    /// After how long a keyframe that did not come is asked for again.
    private static let askAgain: UInt64 = 500_000_000
    /// The longest distance between keyframes, so that one can seek in the recording.
    static let longestDistance: UInt64 = 10_000_000_000
    /// Half a packet of Opus.
    private static let halfPacket: UInt64 = 10_000_000

    private struct Side {
        var isUsed: Bool
        var first: UInt64?
        var last: UInt64?

        mutating func came(_ time: UInt64) {
            if first == nil { first = time }
            last = max(last ?? time, time)
        }
    }

    private var video: Side
    private var audio: Side
    private let keepsOffsets: Bool
    /// After how long another keyframe is wanted.
    private let distance: UInt64
    private var lastKeyframe: UInt64 = 0
    /// The time of the first sound that left its queue as a part of the recording.
    private(set) var firstSound: UInt64?
    private var lastAsked: UInt64?
    private var isOverflowing = false
    /// The time that became zero.
    private(set) var origin: UInt64?
    /// When the last picture that was recorded ends, if the picture before it came as long before; nil for the first.
    private(set) var end: UInt64?
    /// Pictures that were left out because the queue had no room.
    private(set) var droppedPictures = 0
    /// Keyframes asked for.
    private(set) var keyframesAsked = 0

    /// `keepsOffsets` says that the container remembers by how much one side began after the other; `segment` is the
    /// length of its pieces, each of which begins at a keyframe.
    init(hasVideo: Bool, hasAudio: Bool, keepsOffsets: Bool, segment: UInt64? = nil) {
        video = Side(isUsed: hasVideo)
        audio = Side(isUsed: hasAudio)
        self.keepsOffsets = keepsOffsets
        distance = segment ?? Self.longestDistance
    }

    /// An encoded picture comes.
    mutating func picture(at time: UInt64, isKeyframe: Bool, room: Room) -> Decision {
        guard video.isUsed else { return Decision() }
        let step = video.last.map { time > $0 ? time - $0 : 0 } ?? 0
        video.came(time)
        var decision = Decision(endsOtherSide: gives(up: \.audio, at: time, since: video.first ?? time))
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
            // The encoder gives it with the next picture: a segment is then as long as it should be.
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
        keyframesAsked += 1
        return true
    }

    /// Encoded sound comes. Where there are pictures it is queued and waits for their beginning.
    mutating func sound(at time: UInt64) -> Decision {
        audio.came(time)
        guard audio.isUsed else { return Decision() }
        var decision = Decision(takes: true)
        if video.isUsed {
            if origin == nil, let first = audio.first, time > first + Self.limit {
                video.isUsed = false
                origin = first
                decision.begins = true
                decision.endsOtherSide = true
            } else {
                decision.endsOtherSide = origin != nil && gives(up: \.video, at: time, since: audio.first ?? time)
            }
        } else if origin == nil {
            origin = time
            decision.begins = true
        }
        return decision
    }

    /// Sound leaves its queue: whether it belongs to the recording, and with the first that does the time that becomes its
    /// zero.
    mutating func soundLeaves(at time: UInt64) -> (takes: Bool, begins: UInt64?) {
        guard let origin else { return (false, nil) }
        if let firstSound { return (time >= firstSound, nil) }
        let isPlaced = keepsOffsets || !video.isUsed
        // What the container forgets is kept small: the packet that begins nearest to the first picture is the first.
        guard time + (isPlaced ? 0 : Self.halfPacket) >= origin else { return (false, nil) }
        firstSound = time
        return (true, isPlaced ? origin : time)
    }

    /// Whether the other side has been waited for long enough; it is then taken to have none.
    private mutating func gives(up side: WritableKeyPath<RecordingGate, Side>, at time: UInt64, since: UInt64) -> Bool {
        guard self[keyPath: side].isUsed else { return false }
        let isOver =
            self[keyPath: side].last.map { time > $0 + Self.limit } ?? (time > since + Self.limitAtStart)
        if isOver { self[keyPath: side].isUsed = false }
        return isOver
    }

    /// Whether any sound has come.
    var hasSound: Bool { audio.first != nil }

    /// A side has come to its end.
    mutating func videoEnded() { video.isUsed = false }
    mutating func soundEnded() { audio.isUsed = false }
}

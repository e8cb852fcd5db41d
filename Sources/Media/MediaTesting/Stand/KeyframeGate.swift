import MediaGraph

/// What the queue behind a capturer of encoded pictures does: it takes them from a keyframe on, drops to the next one when
/// it is full, and asks for it.
struct KeyframeGate {
    /// Nobody is asked more often.
    private static let askInterval = 0.1

    private var needsKeyframe = true
    private var askedAt: MediaTime?
    private var isAsked = false

    /// Whether a picture that comes now is taken.
    mutating func takes(isKeyframe: Bool, isFull: Bool, at now: MediaTime) -> Bool {
        if isFull { needsKeyframe = true } else if isKeyframe { needsKeyframe = false }
        if needsKeyframe, askedAt.map({ now.seconds(since: $0) >= Self.askInterval }) ?? true {
            askedAt = now
            isAsked = true
        }
        return !needsKeyframe
    }

    /// Whether it has asked since this was last called.
    mutating func takeRequest() -> Bool {
        defer { isAsked = false }
        return isAsked
    }
}

/// How long keyframes were waited for that were asked for because something was dropped.
struct KeyframeWait {
    /// It comes within so many seconds, or a few pictures: what is behind shows nothing until then.
    let limit: Double
    /// The longest of those that came to an end.
    private var longest = 0.0
    /// Since when one is waited for; nil where none is.
    private(set) var since: MediaTime?

    init(_ units: [CapturedUnit]) {
        limit = max(2.5, 4.5 / max(units.first?.format.framesPerSecond ?? 30, 0.01))
        for unit in units {
            guard let isKeyframe = unit.isKeyframe else { continue }
            if isKeyframe {
                longest = max(longest, since.map { unit.arrival.seconds(since: $0) } ?? 0)
                since = nil
            } else if !unit.isTaken, since == nil {
                since = unit.arrival
            }
        }
    }

    /// Whether one took too long, or takes too long already.
    func isTooLong(at now: MediaTime) -> Bool {
        max(longest, since.map { now.seconds(since: $0) } ?? 0) > limit
    }
}

package import RTP

/// Keeps video that nothing here encodes within its share of the path: drops whole frames, up to the next keyframe.
///
/// The encoder is in a camera, a file or another machine, and follows no limit in time. The gate keeps account of a queue that the share drains.
package struct FrameGate: Sendable {
    package enum Verdict: Equatable, Sendable {
        case pass
        /// The frame must not be sent. With `asks`, a keyframe has room and has to be requested.
        case drop(asks: Bool)
    }

    /// A frame that lets the queue exceed this is dropped, and all after it.
    static let longestQueue = TimeInterval.milliseconds(500)
    /// A keyframe passes again below this.
    static let resumption = TimeInterval.milliseconds(100)
    /// Between two keyframes that it asks for.
    package var requestInterval = TimeInterval.milliseconds(500)
    /// A share that is not renewed ends.
    static let lifetime = TimeInterval.seconds(3)

    private var share: (rate: Double, at: MonotonicTime)?
    package var hasShare: Bool { share != nil }
    private var queued = 0.0
    private var drained: MonotonicTime?
    /// Whether it drops frames until a keyframe.
    package private(set) var isClosed = false
    private var asked: MonotonicTime?
    package private(set) var dropped = 0
    package private(set) var lastDrop: MonotonicTime?

    package init() {}

    /// - Parameter bitsPerSecond: the share as a rate of the path
    package mutating func setShare(_ bitsPerSecond: Double, now: MonotonicTime) {
        drain(now)
        share = (max(1000, bitsPerSecond), now)
    }

    /// - Parameter bytes: of the frame's packets with all headers
    package mutating func admit(bytes: Int, isKeyframe: Bool, now: MonotonicTime) -> Verdict {
        guard let share, now - share.at < Self.lifetime else {
            queued = 0
            // Nothing limits the stream any longer, but decoders still need a keyframe.
            guard isClosed, !isKeyframe else {
                isClosed = false
                return .pass
            }
            return drop(now, asks: true)
        }
        drain(now)
        let wait = queued * 8 / share.rate
        if isClosed {
            let hasRoom = wait <= Self.resumption.seconds
            guard isKeyframe, hasRoom else { return drop(now, asks: hasRoom) }
            isClosed = false
        } else if !isKeyframe, (queued + Double(bytes)) * 8 / share.rate > Self.longestQueue.seconds {
            isClosed = true
            return drop(now, asks: false)
        } else if isKeyframe, wait > Self.longestQueue.seconds {
            isClosed = true
            return drop(now, asks: false)
        }
        queued += Double(bytes)
        return .pass
    }

    /// Counts further packets of a frame that has passed.
    package mutating func add(bytes: Int) { queued += Double(bytes) }

    /// Nothing limits the stream any longer. If frames were dropped, it goes on at a keyframe.
    package mutating func removeShare() { share = nil }

    private mutating func drop(_ now: MonotonicTime, asks: Bool) -> Verdict {
        dropped += 1
        lastDrop = now
        guard asks, asked.map({ now - $0 >= requestInterval }) ?? true else { return .drop(asks: false) }
        asked = now
        return .drop(asks: true)
    }

    private mutating func drain(_ now: MonotonicTime) {
        if let share, let drained { queued = max(0, queued - share.rate / 8 * (now - drained).seconds) }
        drained = now
    }
}

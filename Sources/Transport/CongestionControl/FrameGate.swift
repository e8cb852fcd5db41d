package import RTP

/// Keeps video that nothing here encodes within its share of the path: drops whole frames, up to the next keyframe.
///
/// The encoder is in a camera or a file and follows no limit.
package struct FrameGate: Sendable {
    package enum Verdict: Equatable, Sendable {
        case pass
        /// The frame must not be sent. With `asks`, a keyframe has room and has to be requested.
        case drop(asks: Bool)
    }

    private static let requestInterval = TimeInterval.milliseconds(500)

    private var queue = ShareQueue()
    private var isClosed = false
    private var asked: MonotonicTime?
    package private(set) var dropped = 0
    package private(set) var lastDrop: MonotonicTime?

    package init() {}

    /// - Parameter bitsPerSecond: the share as a rate of the path
    package mutating func setShare(_ bitsPerSecond: Double, now: MonotonicTime) {
        queue.setShare(bitsPerSecond, now: now)
    }

    /// - Parameter bytes: of the frame's packets with all headers
    package mutating func admit(bytes: Int, isKeyframe: Bool, now: MonotonicTime) -> Verdict {
        guard let wait = queue.wait(now: now) else {
            // Nothing limits the stream any longer, but decoders still need a keyframe.
            guard isClosed, !isKeyframe else {
                isClosed = false
                return .pass
            }
            return drop(now, asks: true)
        }
        if isClosed {
            let hasRoom = wait <= ShareQueue.resumption
            guard isKeyframe, hasRoom else { return drop(now, asks: hasRoom) }
            isClosed = false
        } else if wait + (isKeyframe ? .zero : queue.time(for: bytes)) > ShareQueue.longest {
            isClosed = true
            return drop(now, asks: false)
        }
        queue.add(bytes: bytes)
        return .pass
    }

    private mutating func drop(_ now: MonotonicTime, asks: Bool) -> Verdict {
        dropped += 1
        lastDrop = now
        guard asks, asked.map({ now - $0 >= Self.requestInterval }) ?? true else { return .drop(asks: false) }
        asked = now
        return .drop(asks: true)
    }
}

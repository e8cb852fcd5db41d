internal import CongestionControl
internal import RTP

/// Keeps one subscriber's video within its share of the link: leaves the frames of higher temporal layers out, if there are any, and
/// otherwise all frames up to a keyframe for which there is room.
struct Thinning {
    /// Requested keyframes cost everyone bits. So subscribers that share a stream go on together, at these times.
    private static let interval = 2_000_000_000 as UInt64
    /// How long they may do so.
    private static let opening = 300_000_000 as UInt64

    /// With a longer queue, the second temporal layer and those above it are left out, and the first one.
    private static let longest = (upper: TimeInterval.milliseconds(100), first: TimeInterval.milliseconds(200))
    /// A layer comes back with a queue this short, and this long after the last one went.
    private static let shortest = TimeInterval.milliseconds(20)
    private static let patience = TimeInterval.seconds(1)
    private static let allLayers = UInt8.max
    /// A layer that has not come back for so long does so at a keyframe.
    private static let keyframePatience = TimeInterval.seconds(5)

    private var queue = ShareQueue()
    /// The highest temporal layer that is sent, when it became the highest, and those that there are, as bits.
    private var (highest, changed, present) = (Self.allLayers, MonotonicTime.zero, UInt8(0))
    /// The newest frame of a layer above the base layer, and whether it is left out.
    private var upper: (timestamp: RTPTimestamp, isLeftOut: Bool)?
    /// The timestamp of the newest frame.
    private var frame: RTPTimestamp?
    /// Whether the frames before the next keyframe are left out.
    private(set) var isPausing = false

    /// Since when the link carries all of the stream again. Layers have yet to come back.
    private var ended: MonotonicTime?
    var isEnding: Bool { ended != nil }

    /// - Parameter bitsPerSecond: the share as a rate of the path
    mutating func setShare(_ bitsPerSecond: Double, now: MonotonicTime) {
        queue.setShare(bitsPerSecond, now: now)
        ended = nil
    }

    /// The link carries all of the stream from now on. Returns whether nothing has to be left out any longer: otherwise layers
    /// come back at frames that depend on no missing ones.
    mutating func end(now: MonotonicTime) -> Bool {
        queue.setShare(nil, now: now)
        ended = ended ?? now
        return highest == Self.allLayers || isPausing
    }

    /// Whether to leave out a packet of a temporal layer above the base layer. Nil for one of an earlier frame.
    mutating func leavesOut(
        _ layer: UInt8, isSync: Bool, of timestamp: RTPTimestamp, isNewest: Bool, now: MonotonicTime
    ) -> Bool? {
        if let upper, upper.timestamp == timestamp { return upper.isLeftOut }
        guard isNewest else { return nil }
        changeHighest(before: layer, isSync: isSync, now: now)
        upper = (timestamp, layer > highest)
        return layer > highest
    }

    /// A layer comes back at a frame that depends on the base layer alone, and after those below it.
    private mutating func changeHighest(before layer: UInt8, isSync: Bool, now: MonotonicTime) {
        present |= 1 << layer
        let wait = queue.wait(now: now) ?? .zero
        if wait > (layer > 1 ? Self.longest.upper : Self.longest.first) {
            (highest, changed) = (min(highest, layer - 1), now)
        } else if layer > highest, isSync, isNext(layer), wait <= Self.shortest, now - changed >= Self.patience {
            (highest, changed) = (present >> (layer + 1) == 0 ? Self.allLayers : layer, now)
        }
    }

    /// Behind a frame of this layer, those of higher ones depend on none of them before it. So the next layer comes back
    /// there, if the frame itself is sent.
    mutating func bringsBackLayer(above layer: UInt8, isNewest: Bool, now: MonotonicTime) {
        guard isNewest, highest != Self.allLayers, layer <= highest, !isPausing, now - changed >= Self.patience,
            queue.wait(now: now) ?? .zero <= Self.shortest
        else { return }
        let next = ((highest + 1)..<8).first { present >> $0 & 1 != 0 }
        highest = next.flatMap { present >> ($0 + 1) == 0 ? nil : $0 } ?? Self.allLayers
        changed = now
    }

    /// Whether there is no layer between it and the highest one that is sent.
    private func isNext(_ layer: UInt8) -> Bool { ((highest + 1)..<layer).allSatisfy { present >> $0 & 1 == 0 } }

    /// Whether to request a keyframe, because no frame of a missing layer depends on the base layer alone.
    func needsKeyframe(now: MonotonicTime) -> Bool {
        ended.map { now - max($0, changed) >= Self.keyframePatience } ?? false
    }

    /// Whether the packet begins a frame for which there is no room. From then on, frames are left out.
    mutating func pauses(
        before timestamp: RTPTimestamp, isKeyframe: Bool = false, isNewest: Bool, now: MonotonicTime
    ) -> Bool {
        guard isNewest, timestamp != frame else { return false }
        frame = timestamp
        let wait = queue.wait(now: now) ?? .zero
        // Frames behind a keyframe depend on no missing one.
        if isKeyframe, wait <= Self.shortest { (highest, present) = (Self.allLayers, 0) }
        guard wait > ShareQueue.longest else { return false }
        isPausing = true
        return true
    }

    /// Whether there is room for a keyframe. The pause ends.
    ///
    /// - Parameters:
    ///   - isKeyframe: whether one has come, which costs nobody anything
    ///   - isAlone: whether nobody else receives the stream
    mutating func resumes(isKeyframe: Bool = false, isAlone: Bool, now: MonotonicTime) -> Bool {
        guard isPausing else { return true }
        guard isKeyframe || isAlone || now.nanoseconds % Self.interval < Self.opening,
            queue.wait(now: now) ?? .zero <= ShareQueue.resumption
        else { return false }
        isPausing = false
        (highest, changed) = (Self.allLayers, now)
        return true
    }

    /// - Parameter bytes: of a packet that is sent, with all headers
    mutating func sent(bytes: Int) { queue.add(bytes: bytes) }
}

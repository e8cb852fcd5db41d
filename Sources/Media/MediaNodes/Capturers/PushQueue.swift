import GStreamerKit
import MediaGraph
import Synchronization

/// The queue at the head of a node with pushed media. Raw media drops the oldest; encoded video drops to the next
/// keyframe and requests it.
final class PushQueue: Sendable {
    /// Capacity for encoded frames: half a second at the usual rate.
    static let encodedLimits = QueuePlan.Limits(frames: 15, rule: .dropToKeyframe)

    private struct State {
        var pushed = 0
        var dropped = 0
        /// The number of buffers that entered the queue, and of those that left it.
        var queued = 0
        var left = 0
        var gate = KeyframeGate()
        var askedAt: MediaTime?

        /// Whether to request a keyframe now. Records the request.
        mutating func asks() -> Bool {
            let now = GStreamer.now
            guard askedAt.map({ now.seconds(since: $0) >= PushQueue.askInterval }) ?? true else { return false }
            askedAt = now
            return true
        }
    }

    /// Captured media cannot lie in the future; the margin covers clocks that are read a moment apart.
    private static let mostAhead = 1.0

    /// Whether the time lies in the future, so that it is from another clock.
    static func isAhead(_ time: MediaTime) -> Bool { time.seconds(since: GStreamer.now) > mostAhead }

    /// Shortest interval between requests.
    private static let askInterval = 0.1

    let source: PushSource
    private let pipeline: WeakBox<Pipeline>
    private let isEncoded: Bool
    private let state = Mutex(State())
    private let onKeyframeNeeded: @Sendable () -> Void

    /// Calls `onKeyframeNeeded` on the thread that detects the need.
    init(_ instance: NodeInstance, isEncoded: Bool, onKeyframeNeeded: @escaping @Sendable () -> Void) {
        source = PushSource(instance.element("source"))
        pipeline = WeakBox(instance.pipeline)
        self.isEncoded = isEncoded
        self.onKeyframeNeeded = onKeyframeNeeded
        let output = instance.element("source").source
        output.watchBuffers { [weak self] _ in
            self?.state.withLock { $0.left += 1 }
        }
        output.onUpstreamEvent { [weak self] event in
            // Raw frames need no keyframe.
            if let self, case .forceKeyUnit = event, isEncoded, state.withLock({ $0.asks() }) { onKeyframeNeeded() }
            return .pass
        }
    }

    /// Plans the queue's element.
    static func plan(
        _ plan: inout NodePlan, caps: String, _ limits: QueuePlan.Limits, holding format: MediaFormat,
        as element: String = "source"
    ) {
        var properties = PushSource.properties
        properties["caps"] = .text(caps)
        if limits.rule == .dropOldest {
            properties["max-buffers"] = .integer(limits.frames ?? 0)
            properties["max-time"] = .integer(limits.seconds.map { Int($0 * 1e9) } ?? 0)
            properties["leaky-type"] = "downstream"
        }
        plan.add("appsrc", as: element, properties)
        plan.queues.append(QueuePlan(element: element, limits: limits, bytesPerFrame: format.bytesPerFrame))
    }

    /// Nanoseconds since the pipeline's start. Nil if it does not run, and for future times.
    private func timestamp(_ time: MediaTime) -> UInt64? {
        guard !Self.isAhead(time), let base = pipeline.value?.baseTime, base > 0 else { return nil }
        return time.nanoseconds > base ? time.nanoseconds - base : 0
    }

    /// Pushes raw media with `body`, which receives the source and the timestamp. Returns false if it was dropped.
    func push(at time: MediaTime, _ body: (PushSource, UInt64) throws -> Bool) rethrows -> Bool {
        state.withLock { $0.pushed += 1 }
        guard !isEncoded, let timestamp = timestamp(time), try body(source, timestamp) else { return refused() }
        state.withLock { $0.queued += 1 }
        return true
    }

    /// Copies and pushes an encoded frame. Returns false if it was dropped.
    func push(encoded bytes: RawSpan, at time: MediaTime, isKeyframe: Bool) -> Bool {
        guard isEncoded, let timestamp = timestamp(time) else {
            state.withLock { $0.pushed += 1 }
            return refused()
        }
        let isFull = source.waiting >= Self.encodedLimits.frames ?? .max
        let (isTaken, asks) = state.withLock { state -> (Bool, Bool) in
            state.pushed += 1
            let isTaken = state.gate.admits(isKeyframe: isKeyframe, isFull: isFull)
            return (isTaken, !isTaken && state.asks())
        }
        if asks { onKeyframeNeeded() }
        guard isTaken, source.push(bytes, timestamp: timestamp, isKeyframe: isKeyframe) else { return refused() }
        state.withLock { $0.queued += 1 }
        return true
    }

    /// Counts a refused push. Always returns false.
    func refused() -> Bool {
        state.withLock { $0.dropped += 1 }
        return false
    }

    var statistics: FrameInput.Statistics {
        let waiting = source.waiting
        return state.withLock { state in
            // Buffers that entered the queue, did not leave it and do not wait in it were displaced by newer ones.
            let pushedOut = max(0, state.queued - state.left - waiting)
            return FrameInput.Statistics(pushed: state.pushed, dropped: state.dropped + pushedOut, waiting: waiting)
        }
    }
}

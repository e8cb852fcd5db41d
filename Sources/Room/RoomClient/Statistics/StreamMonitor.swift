internal import ClientCore
internal import MediaGraph
internal import RTP
internal import Synchronization

/// Measures one received stream as it is rendered: frames, frame rate, latency.
///
/// `rendered` is called on a GStreamer thread, everything else on the loop.
final class StreamMonitor: Sendable {
    private static let latencyCapacity = 4096
    /// Frames of `RoomStatistics.Latency.recentMilliseconds`.
    private static let recentLatencies = 150

    /// How latencies are measured. Values of two bases are not mixed.
    private struct Basis: Equatable {
        var method = RoomStatistics.LatencyMethod.rtpTimestamp
        var comparison = StreamClock.Comparison.roundTrips
    }

    private struct State {
        var frames = 0
        var width = 0
        var height = 0
        var firstFrame: MediaTime?
        var lastFrame: MediaTime?
        var longestGap = 0.0
        var frameRate = RateWindow()
        var latencies: [Double] = []
        var nextLatency = 0
        var basis = Basis()
        var clock: StreamClock?
    }

    private let key: StreamKey
    private let state = Mutex(State())

    init(key: StreamKey) { self.key = key }

    /// A frame was passed to the renderers.
    func rendered(_ frame: VideoFrame) {
        let captured = frame.rtpTimestamp.flatMap { CaptureLedger.shared.captureTime(key, rtpTimestamp: $0) }
        state.withLock { state in
            state.frames += 1
            (state.width, state.height) = (frame.width, frame.height)
            if state.firstFrame == nil { state.firstFrame = frame.handedOver }
            if let last = state.lastFrame {
                state.longestGap = max(state.longestGap, frame.handedOver.milliseconds(since: last))
            }
            state.lastFrame = frame.handedOver
            if let captured {
                add(frame.handedOver.milliseconds(since: captured), by: Basis(), to: &state)
            } else if let timestamp = frame.rtpTimestamp,
                let age = state.clock?.age(
                    of: RTPTimestamp(timestamp), at: MonotonicTime(nanoseconds: frame.handedOver.nanoseconds),
                    wallClock: WallClock.shared.time)
            {
                let method: RoomStatistics.LatencyMethod =
                    age.source == .captureTime ? .captureTime : .senderReport
                add(age.time.milliseconds, by: Basis(method: method, comparison: age.comparison), to: &state)
            }
        }
    }

    func clockChanged(_ clock: StreamClock) {
        state.withLock { $0.clock = clock }
    }

    /// Called about twice a second.
    func sample(now: MonotonicTime) {
        state.withLock { state in state.frameRate.sample(state.frames, now: now) }
    }

    func fill(_ statistics: inout RoomStatistics.Received, connectStarted: MonotonicTime) {
        state.withLock { state in
            statistics.framesRendered = state.frames
            statistics.framesPerSecond = state.frameRate.rate
            statistics.longestGapMilliseconds = state.longestGap
            statistics.width = state.width
            statistics.height = state.height
            statistics.firstFrameMilliseconds = state.firstFrame.map {
                $0.milliseconds(since: MediaTime(nanoseconds: connectStarted.nanoseconds))
            }
            statistics.latency = latency(of: state)
        }
    }

    private func add(_ milliseconds: Double, by basis: Basis, to state: inout State) {
        if basis != state.basis {
            state.latencies = []
            state.nextLatency = 0
            state.basis = basis
        }
        if state.latencies.count < Self.latencyCapacity {
            state.latencies.append(milliseconds)
        } else {
            state.latencies[state.nextLatency] = milliseconds
            state.nextLatency = (state.nextLatency + 1) % Self.latencyCapacity
        }
    }

    private func recentMedian(of state: State) -> Double {
        let (all, count) = (state.latencies, state.latencies.count)
        let recent = (1...min(count, Self.recentLatencies)).map { all[(state.nextLatency - $0 + count) % count] }
            .sorted()
        return recent[recent.count / 2]
    }

    private func latency(of state: State) -> RoomStatistics.Latency? {
        guard !state.latencies.isEmpty else { return nil }
        let sorted = state.latencies.sorted()
        return RoomStatistics.Latency(
            method: state.basis.method, isMeasured: state.basis.comparison == .roundTrips, samples: sorted.count,
            medianMilliseconds: sorted[sorted.count / 2], recentMilliseconds: recentMedian(of: state),
            p95Milliseconds: sorted[min(sorted.count - 1, sorted.count * 95 / 100)],
            maximumMilliseconds: sorted[sorted.count - 1])
    }
}

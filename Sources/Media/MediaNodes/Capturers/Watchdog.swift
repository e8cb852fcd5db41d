import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Measures how long a source has been silent.
///
/// Counts polls without news, instead of reading the clock: a process that is stalled as a whole (by a busy machine, a
/// debugger, a suspended guest) polls no more often than its device can deliver.
struct Silence {
    enum Judgement {
        case usual
        /// Too long for a source that does not respond otherwise.
        case long
        case over
    }

    /// The interval between polls, in seconds.
    static let interval = 0.25

    private let limit: Int
    private let timeout: Int
    /// Polls since the last media.
    private var polls = 0

    /// `limit` and `timeout` are in seconds.
    init(limit: Double, timeout: Double) {
        self.limit = Int(limit / Self.interval)
        self.timeout = Int(timeout / Self.interval)
    }

    /// Media arrived, or none is expected now.
    mutating func begin() { polls = 0 }

    mutating func poll() -> Judgement {
        defer { polls += 1 }
        return polls >= timeout ? .over : polls >= limit ? .long : .usual
    }
}

/// Detects that a device has stopped delivering: some drivers do not report that they were unplugged.
final class Watchdog: Sendable {
    private struct State {
        var silence: Silence
        var isFed = false
        var isStopped = false
    }

    private let state: Mutex<State>
    private let control: DispatchQueue
    private let pipeline: WeakBox<Pipeline>?
    private let isThere: @Sendable () -> Bool
    private let onSilence: @Sendable () -> Void
    private let onFirst: @Sendable () -> Void

    /// Calls `onSilence` once, on `control`, when nothing has arrived for `limit` seconds after some media; while
    /// `isThere` reports that the device still responds, only after `timeout` seconds. Calls `isThere` on `control`.
    /// Nothing is expected while `pipeline` is paused.
    init(
        limit: Double, timeout: Double? = nil, control: DispatchQueue, pipeline: Pipeline? = nil,
        isThere: @escaping @Sendable () -> Bool = { false }, onSilence: @escaping @Sendable () -> Void,
        onFirst: @escaping @Sendable () -> Void = {}
    ) {
        state = Mutex(State(silence: Silence(limit: limit, timeout: timeout ?? limit)))
        self.control = control
        self.pipeline = pipeline.map { WeakBox($0) }
        self.isThere = isThere
        self.onSilence = onSilence
        self.onFirst = onFirst
    }

    /// Watches a capturer: its start waits for the first media, and silence ends it with the error `lost`.
    convenience init(
        _ instance: NodeInstance, limit: Double, timeout: Double? = nil,
        isThere: @escaping @Sendable () -> Bool = { false }, lost: MediaError
    ) {
        let (reporter, name) = (instance.reporter, instance.name)
        reporter.await(name)
        self.init(
            limit: limit, timeout: timeout, control: instance.control, pipeline: instance.pipeline, isThere: isThere,
            onSilence: { reporter.fail(lost, name) }, onFirst: { reporter.isReady(name) })
    }

    /// Whether any media has arrived.
    var isFed: Bool { state.withLock { $0.isFed } }

    /// Media arrived. Called for each frame.
    func feed() {
        let isFirst = state.withLock { state in
            defer { state.isFed = true }
            state.silence.begin()
            return !state.isFed
        }
        guard isFirst else { return }
        onFirst()
        checkLater()
    }

    private func checkLater() {
        control.asyncAfter(deadline: .now() + Silence.interval) { [weak self] in self?.check() }
    }

    private func check() {
        let (isStopped, judgement) = state.withLock { ($0.isStopped, $0.silence.poll()) }
        if isStopped { return }
        if pipeline?.value?.isPaused == true {
            state.withLock { $0.silence.begin() }
            return checkLater()
        }
        if judgement == .over || (judgement == .long && !isThere()) {
            stop()
            onSilence()
        } else {
            checkLater()
        }
    }

    /// Stops polling. Called on `control`.
    func stop() {
        state.withLock { $0.isStopped = true }
    }
}

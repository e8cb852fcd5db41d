import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Measures how long a source has been silent.
///
/// Counts polls without news, instead of reading the clock: a process that is stalled as a whole (by a busy machine, a
/// debugger, a suspended guest) polls no more often than its device can deliver.
struct Silence {
    /// The interval between polls, in seconds.
    static let interval = 0.25

    private let limit: Int
    /// Polls since the last media.
    private var polls = 0

    /// `limit` is in seconds.
    init(limit: Double) { self.limit = Int(limit / Self.interval) }

    /// Media arrived, or none is expected now.
    mutating func begin() { polls = 0 }

    /// Returns whether the silence is too long.
    mutating func poll() -> Bool {
        defer { polls += 1 }
        return polls >= limit
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
    private let onSilence: @Sendable () -> Void
    private let onFirst: @Sendable () -> Void

    /// Calls `onSilence` once, on `control`, when nothing has arrived for `limit` seconds after some media. Nothing is
    /// expected while `pipeline` is paused.
    init(
        limit: Double, control: DispatchQueue, pipeline: Pipeline? = nil, onSilence: @escaping @Sendable () -> Void,
        onFirst: @escaping @Sendable () -> Void = {}
    ) {
        state = Mutex(State(silence: Silence(limit: limit)))
        self.control = control
        self.pipeline = pipeline.map { WeakBox($0) }
        self.onSilence = onSilence
        self.onFirst = onFirst
    }

    /// Watches a capturer: its start waits for the first media, and silence ends it with the error `lost`.
    convenience init(_ instance: NodeInstance, limit: Double, lost: MediaError) {
        let (reporter, name) = (instance.reporter, instance.name)
        reporter.await(name)
        self.init(
            limit: limit, control: instance.control, pipeline: instance.pipeline,
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
        let (isStopped, isOver) = state.withLock { ($0.isStopped, $0.silence.poll()) }
        if isStopped { return }
        if pipeline?.value?.isPaused == true {
            state.withLock { $0.silence.begin() }
            return checkLater()
        }
        guard isOver else { return checkLater() }
        stop()
        onSilence()
    }

    /// Stops polling. Called on `control`.
    func stop() {
        state.withLock { $0.isStopped = true }
    }
}

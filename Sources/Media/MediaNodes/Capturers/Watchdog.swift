import Dispatch
import GStreamerKit
import Synchronization

/// How long something that should speak has been silent.
///
/// Counted in looks that found nothing new, not by the clock: a process that was held up as a whole (a busy machine, a
/// debugger, a suspended guest) looks no more often than its device gets to speak.
struct Silence {
    enum Judgement {
        case usual
        /// Too long for one that does not answer otherwise.
        case long
        case over
    }

    /// How long after one another looks are to be, in seconds.
    static let interval = 0.25

    private let limit: Int
    private let patience: Int
    /// Looks since something came.
    private var looks = 0

    /// `limit` and `patience` are in seconds.
    init(limit: Double, patience: Double) {
        self.limit = Int(limit / Self.interval)
        self.patience = Int(patience / Self.interval)
    }

    /// Something came, or nothing is expected now.
    mutating func begin() { looks = 0 }

    mutating func look() -> Judgement {
        defer { looks += 1 }
        return looks >= patience ? .over : looks >= limit ? .long : .usual
    }
}

/// Notices that a device which was giving media has gone quiet: some drivers never say that they were unplugged.
final class Watchdog: Sendable {
    private struct State {
        var silence: Silence
        var isFed = false
        var isStopped = false
    }

    private let state: Mutex<State>
    private let control: DispatchQueue
    private let pipeline: WeakPipeline?
    private let isThere: @Sendable () -> Bool
    private let onSilence: @Sendable () -> Void

    /// `onSilence` is called once, on `control`, when nothing has come for `limit` seconds after something had; while
    /// `isThere` says that the device still answers, only after `patience` seconds. `isThere` is called on `control`. While
    /// `pipeline` is paused nothing is expected.
    init(
        limit: Double, patience: Double? = nil, control: DispatchQueue, pipeline: Pipeline? = nil,
        isThere: @escaping @Sendable () -> Bool = { false }, onSilence: @escaping @Sendable () -> Void
    ) {
        state = Mutex(State(silence: Silence(limit: limit, patience: patience ?? limit)))
        self.control = control
        self.pipeline = pipeline.map(WeakPipeline.init)
        self.isThere = isThere
        self.onSilence = onSilence
    }

    /// Whether anything has come yet.
    var isFed: Bool { state.withLock { $0.isFed } }

    /// Something came. Called for each frame.
    func feed() {
        let isFirst = state.withLock { state in
            defer { state.isFed = true }
            state.silence.begin()
            return !state.isFed
        }
        if isFirst { checkLater() }
    }

    private func checkLater() {
        control.asyncAfter(deadline: .now() + Silence.interval) { [weak self] in self?.check() }
    }

    private func check() {
        let (isStopped, judgement) = state.withLock { ($0.isStopped, $0.silence.look()) }
        if isStopped { return }
        if pipeline?.pipeline?.isPaused == true {
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

    /// Looks no longer. Called on `control`.
    func stop() {
        state.withLock { $0.isStopped = true }
    }
}

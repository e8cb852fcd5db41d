import Dispatch
import GStreamerKit
import Synchronization

/// Notices that a device which was giving media has gone quiet: some drivers never say that they were unplugged.
///
/// Silence is counted in looks that found nothing new, not by the clock: a process that was held up as a whole (a busy
/// machine, a debugger, a suspended guest) looks no more often than its device gets to speak.
final class Watchdog: Sendable {
    private struct State {
        var isFed = false
        /// Looks since something came.
        var looks = 0
        var isStopped = false
    }

    private static let interval = 0.25

    private let state = Mutex(State())
    private let limit: Int
    private let patience: Int
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
        self.limit = Int(limit / Self.interval)
        self.patience = Int((patience ?? limit) / Self.interval)
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
            state.looks = 0
            return !state.isFed
        }
        if isFirst { checkLater() }
    }

    private func checkLater() {
        control.asyncAfter(deadline: .now() + Self.interval) { [weak self] in self?.check() }
    }

    private func check() {
        let (isStopped, looks) = state.withLock { state in
            defer { state.looks += 1 }
            return (state.isStopped, state.looks)
        }
        if isStopped { return }
        if pipeline?.pipeline?.isPaused == true {
            state.withLock { $0.looks = 0 }
            return checkLater()
        }
        if looks >= patience || (looks >= limit && !isThere()) {
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

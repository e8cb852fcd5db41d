import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Notices that a device which was giving media has gone quiet: some drivers never say that they were unplugged.
final class Watchdog: Sendable {
    private struct State {
        var lastSeen: MediaTime?
        var isStopped = false
    }

    private static let interval = DispatchTimeInterval.milliseconds(250)

    private let state = Mutex(State())
    private let limit: Double
    private let control: DispatchQueue
    private let onSilence: @Sendable () -> Void

    /// `onSilence` is called once, on `control`, when nothing has come for `limit` seconds after something had.
    init(limit: Double, control: DispatchQueue, onSilence: @escaping @Sendable () -> Void) {
        self.limit = limit
        self.control = control
        self.onSilence = onSilence
    }

    /// Whether anything has come yet.
    var isFed: Bool { state.withLock { $0.lastSeen != nil } }

    /// Something came. Called for each frame.
    func feed() {
        let isFirst = state.withLock { state in
            defer { state.lastSeen = GStreamer.now }
            return state.lastSeen == nil
        }
        if isFirst { checkLater() }
    }

    private func checkLater() {
        control.asyncAfter(deadline: .now() + Self.interval) { [weak self] in self?.check() }
    }

    private func check() {
        let (isStopped, isSilent) = state.withLock { state in
            let silence = state.lastSeen.map { GStreamer.now.seconds(since: $0) } ?? 0
            return (state.isStopped, silence > limit)
        }
        if isStopped { return }
        if isSilent {
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

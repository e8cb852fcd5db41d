internal import Glibc
internal import MediaNodes

/// Waits for Ctrl-C, SIGTERM or SIGHUP, so that a command can leave its room before it ends. A second signal ends the
/// process immediately, except SIGHUP. A SIGHUP that the parent has ignored, as nohup does, stays ignored.
struct Interruption: Sendable {
    /// Until the process ends, because a second signal may come while the command leaves.
    private static let signals = TerminationSignals { $0 == SIGHUP }

    init() { _ = Self.signals }

    /// Returns at the first signal, or after `seconds`. Called once.
    func wait(seconds: Double?) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await Self.signals.wait() }
            if let seconds {
                group.addTask { try? await Task.sleep(for: .seconds(seconds)) }
            }
            await group.next()
            group.cancelAll()
        }
    }
}

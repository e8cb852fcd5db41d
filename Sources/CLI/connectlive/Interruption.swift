internal import Glibc
internal import MediaNodes

/// Waits for Ctrl-C, SIGTERM or SIGHUP, so that a command can leave its room before it ends. A second signal ends the
/// process immediately, except SIGHUP. A SIGHUP that the parent has ignored, as nohup does, stays ignored.
struct Interruption: Sendable {
    /// Until the process ends, because a second signal may come while the command leaves.
    private static let signals = makeSignals()

    private static func makeSignals() -> TerminationSignals { TerminationSignals { $0 == SIGHUP } }

    init() { _ = Self.signals }

    /// Runs `body`. Returns nil at the first signal, and cancels `body`, which may go on.
    func unlessSignalled<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        let (results, continuation) = AsyncStream.makeStream(of: Result<Value, any Error>?.self)
        let work = Task { continuation.yield(await Result { try await body() }) }
        let signals = Self.makeSignals()
        let waiting = Task {
            await signals.wait()
            continuation.yield(nil)
        }
        defer {
            work.cancel()
            waiting.cancel()
        }
        for await result in results { return try result?.get() }
        return nil
    }

    /// Returns at the first signal, at once if one has come before, or after `seconds`, and then true.
    @discardableResult
    func wait(seconds: Double?) async -> Bool {
        let signals = Self.makeSignals()
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                await signals.wait()
                return false
            }
            if let seconds {
                group.addTask { (try? await Task.sleep(for: .seconds(seconds))) != nil }
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}

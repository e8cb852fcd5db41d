// Dispatch on Linux does not declare its sources Sendable; they are only created and kept here.
@preconcurrency internal import Dispatch
internal import Foundation
internal import Synchronization

/// Waits for Ctrl-C, SIGTERM or SIGHUP, so that a command can leave its room before it ends. A second signal ends the
/// process immediately, except SIGHUP: when a terminal closes, its shell and the kernel both send it. A SIGHUP that the
/// parent has ignored, as nohup does, stays ignored.
///
/// Dispatch on Linux replaces a signal's default action when the source is registered, some time after `resume`. Until then a
/// signal would end the process, so the initializer waits for that.
final class Interruption: Sendable {
    private struct Arrival {
        var hasCome = false
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var count = 0
    }

    /// Of the first signal.
    private final class Signal: Sendable {
        private let state = Mutex(Arrival())

        func come() {
            let waiting = state.withLock { state in
                state.hasCome = true
                defer { state.waiting = [:] }
                return Array(state.waiting.values)
            }
            for continuation in waiting { continuation.resume() }
        }

        /// Returns when it has come, or when the task is cancelled.
        func wait() async {
            let number = state.withLock { state in
                state.count += 1
                return state.count
            }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isOver = state.withLock { state in
                        if state.hasCome || Task.isCancelled { return true }
                        state.waiting[number] = continuation
                        return false
                    }
                    if isOver { continuation.resume() }
                }
            } onCancel: {
                state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
            }
        }
    }

    private let sources: [any DispatchSourceSignal]
    private let signal: Signal

    init() {
        let signal = Signal()
        self.signal = signal
        let queue = DispatchQueue(label: "connectlive.signals")
        nonisolated(unsafe) var isSecond = false  // touched on `queue` alone
        let numbers = [SIGINT, SIGTERM, SIGHUP].filter { $0 != SIGHUP || Self.action(of: $0) != .ignored }
        sources = numbers.map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                if isSecond, number != SIGHUP { Foundation.exit(130) }
                isSecond = true
                signal.come()
            }
            source.resume()
            return source
        }
        let limit = ContinuousClock.now + .seconds(2)
        while numbers.contains(where: { Self.action(of: $0) != .handled }), .now < limit { usleep(100) }
    }

    private enum Action {
        case usual, ignored, handled
    }

    private static func action(of number: Int32) -> Action {
        var action = sigaction()
        sigaction(number, nil, &action)
        switch unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) {
        case unsafeBitCast(SIG_DFL, to: Int.self): return .usual
        case unsafeBitCast(SIG_IGN, to: Int.self): return .ignored
        default: return .handled
        }
    }

    /// Runs `body`. Returns nil at the first signal, and cancels `body`, which may go on.
    func unlessSignalled<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        let (results, continuation) = AsyncStream.makeStream(of: Result<Value, any Error>?.self)
        let work = Task { continuation.yield(await Result { try await body() }) }
        let waiting = Task {
            await signal.wait()
            continuation.yield(nil)
        }
        defer {
            work.cancel()
            waiting.cancel()
        }
        for await result in results { return try result?.get() }
        return nil
    }

    /// Returns at the first signal, at once if one has come before, or after `seconds`.
    func wait(seconds: Double?) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [signal] in await signal.wait() }
            if let seconds {
                group.addTask { try? await Task.sleep(for: .seconds(seconds)) }
            }
            await group.next()
            group.cancelAll()
        }
    }
}

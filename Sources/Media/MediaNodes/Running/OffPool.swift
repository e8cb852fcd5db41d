import MediaGraph
import Synchronization

/// Runs `body`, which may block, on a thread of its own. Swift's pool has only as many threads as the machine has cores,
/// so a blocked thread would be missing there.
package func offPool<Value: Sendable>(
    _ body: @escaping @Sendable () throws(MediaError) -> Value
) async throws(MediaError) -> Value {
    try await withTaskExecutorPreference(NodeThread("blocking")) { () async throws(MediaError) in try body() }
}

/// The same, for a caller that need not wait: if its task is cancelled, this throws `CancellationError` at once. `body` sees
/// that in `Task.isCancelled`; its value is released.
func offPoolUntilCancelled<Value: Sendable>(
    _ body: @escaping @Sendable () throws(MediaError) -> Value
) async throws -> Value {
    let answer = Answer<Result<Value, any Error>>()
    let work = Task(executorPreference: NodeThread("blocking")) {
        do throws(MediaError) {
            answer.give(.success(try body()))
        } catch {
            answer.give(.failure(error))
        }
    }
    return try await withTaskCancellationHandler {
        await answer.value
    } onCancel: {
        work.cancel()
        answer.give(.failure(CancellationError()))
    }.get()
}

/// A value for one caller. Of several, only the first counts.
final class Answer<Value: Sendable>: Sendable {
    private let state = Mutex<(value: Value?, caller: CheckedContinuation<Value, Never>?)>((nil, nil))

    func give(_ value: Value) {
        let caller = state.withLock { state -> CheckedContinuation<Value, Never>? in
            guard state.value == nil else { return nil }
            state.value = value
            defer { state.caller = nil }
            return state.caller
        }
        caller?.resume(returning: value)
    }

    /// Waits for the value.
    var value: Value {
        get async {
            await withCheckedContinuation { caller in
                let value = state.withLock { state in
                    if state.value == nil { state.caller = caller }
                    return state.value
                }
                if let value { caller.resume(returning: value) }
            }
        }
    }
}

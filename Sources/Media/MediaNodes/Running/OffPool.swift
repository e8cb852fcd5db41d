import Dispatch
import GStreamerKit
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

/// The same as `offPool`, with a limit, for drivers and file systems that may never respond. The value of a `body` that is
/// late is released.
///
/// - Parameters:
///   - what: the subject of the error: "The plan".
///   - seconds: the limit from the moment at which GStreamer is loaded. Nil for that of an edit's plan.
///   - grace: how long to wait for `body` after a cancellation, in seconds: it may be about to free a device.
/// - Throws: the error of `body`; `pipeline.stalled` after the limit.
package func offPoolInTime<Value: Sendable>(
    _ what: String, within seconds: Double? = nil, grace: Double? = nil,
    _ body: @escaping @Sendable () throws(MediaError) -> Value
) async throws(MediaError) -> Value {
    let (seconds, grace) = (seconds ?? Limits().plan, grace ?? Limits().cancel)
    let answer = Answer<Result<Value, MediaError>>()
    let timeout = Timeout(at: .distantFuture, on: DispatchQueue(label: "media.limits")) { _ in
        answer.give(
            .failure(
                MediaError(
                    code: MediaError.Code.pipelineStalled,
                    message:
                        "\(what) took longer than \(seconds.short) s, because a driver or file system is not "
                        + "responding. Plug the device in again, or check the path.")))
    }
    let work = Task(executorPreference: NodeThread("blocking")) {
        // Registers the plugins when they have changed, which asks no device and may take long.
        GStreamer.load()
        timeout.set(.now() + seconds)
        if Task.isCancelled { timeout.set(.now() + grace) }
        do throws(MediaError) {
            answer.give(.success(try body()))
        } catch {
            answer.give(.failure(error))
        }
    }
    defer { timeout.cancel() }
    return try await withTaskCancellationHandler {
        await answer.value
    } onCancel: {
        work.cancel()
        timeout.set(.now() + grace)
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

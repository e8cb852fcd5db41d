import Dispatch
package import MediaGraph

/// Runs `body`, which may block, on a queue of its own. Swift's pool has only as many threads as the machine has cores,
/// so a blocked thread would be missing there.
package func offPool<Value: Sendable>(
    _ body: @escaping @Sendable () throws(MediaError) -> Value
) async throws(MediaError) -> Value {
    let result = await withCheckedContinuation {
        (continuation: CheckedContinuation<Result<Value, MediaError>, Never>) in
        DispatchQueue(label: "media.blocking").async {
            do throws(MediaError) {
                continuation.resume(returning: .success(try body()))
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
    return try result.get()
}

import MediaGraph

/// Runs `body`, which may block, on a thread of its own. Swift's pool has only as many threads as the machine has cores,
/// so a blocked thread would be missing there.
package func offPool<Value: Sendable>(
    _ body: @escaping @Sendable () throws(MediaError) -> Value
) async throws(MediaError) -> Value {
    try await withTaskExecutorPreference(NodeThread("blocking")) { () async throws(MediaError) in try body() }
}

internal import MediaGraph
internal import MediaNodes

/// Makes and starts a pipeline off the loop, and stops it, in that order whatever the timing.
final class PipelineRunner: Sendable {
    private let task: Task<MediaPipeline?, Never>

    /// `finished` is called once, on an arbitrary thread.
    init(
        _ graph: MediaGraph, bindings: NodeBindings,
        finished: @escaping @Sendable (Result<MediaPipeline, MediaError>) -> Void
    ) {
        task = Task.detached(priority: .userInitiated) {
            do throws(MediaError) {
                let pipeline = try MediaPipeline(graph, bindings: bindings)
                try await pipeline.start()
                finished(.success(pipeline))
                return pipeline
            } catch {
                finished(.failure(error))
                return nil
            }
        }
    }

    func stop() async { await task.value?.stop() }
}

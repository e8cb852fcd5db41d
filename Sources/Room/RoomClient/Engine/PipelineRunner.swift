internal import MediaGraph
internal import MediaNodes
internal import RoomProtocol

/// Creates, starts and stops a decoding pipeline outside of the loop, always in that order.
final class PipelineRunner: DecodingTask {
    private struct RunningPipeline: Decoding {
        let pipeline: MediaPipeline
        let input: PacketInput

        func push(_ packet: RawSpan) { input.push(packet) }
        var statistics: MediaStatistics { pipeline.statistics }
        var framesDecoded: Int { input.framesDecoded }

        var playing: PlayedMedia? { pipeline.playing(ReceivingGraph.input) }

        func hold(seconds: Double) { pipeline.hold(ReceivingGraph.input, seconds: seconds) }
    }

    private let task: Task<MediaPipeline?, Never>

    /// Calls `finished` once, on any thread. `previous` stops first.
    init(
        _ graph: MediaGraph, bindings: NodeBindings, after previous: (any DecodingTask)? = nil,
        finished: @escaping @Sendable (Result<any Decoding, MediaError>) -> Void
    ) {
        task = Task.detached(priority: .userInitiated) {
            await previous?.stop()
            do throws(MediaError) {
                let pipeline = try await MediaPipeline(graph, bindings: bindings)
                try await pipeline.begin()
                guard let input = pipeline.rtpInput(ReceivingGraph.input) else {
                    preconditionFailure("a receiving graph has no input")
                }
                finished(.success(RunningPipeline(pipeline: pipeline, input: input)))
                return pipeline
            } catch {
                finished(.failure(error))
                return nil
            }
        }
    }

    func stop() async { await task.value?.stop() }
}

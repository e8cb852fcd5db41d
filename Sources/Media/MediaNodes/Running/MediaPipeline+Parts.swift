import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

extension MediaPipeline {
    /// The components of a pipeline. Creating them loads plugins and makes elements, which may block.
    struct Parts: Sendable {
        let pipeline: Pipeline
        let reporter: Reporter
        let control: DispatchQueue
        let graph: RunningGraph
        let editor: GraphEditor
        let registry: NodeRegistry
        let bound: BoundCode
        let limits: Limits

        init(
            _ plan: GraphPlan, _ bindings: NodeBindings, _ registry: NodeRegistry, _ limits: Limits
        ) throws(MediaError) {
            let reporter = Reporter(events: bindings.events)
            let control = DispatchQueue(label: "media.pipeline")
            let translator = ErrorTranslator(reporter)
            // The closure lives inside the pipeline's bus, so it must not retain the pipeline.
            let latency = LatencyReaction(control)
            let pipeline = Pipeline(onNote: { translator.hear($0) }) { message in
                switch message {
                case .endOfStream: reporter.ended()
                case .error(let failure): translator.report(failure)
                case .missingPlugin(let name): translator.note(missing: name)
                case .latencyChanged: latency.react()
                }
            }
            latency.set(pipeline)
            bound = BoundCode(bindings)
            let context = PipelineContext(
                pipeline: pipeline, reporter: reporter, control: control, bound: bound)
            graph = try RunningGraph(plan, registry, context)
            editor = GraphEditor(graph, reporter, limits)
            translator.set(graph, editor)
            self.registry = registry
            self.limits = limits
            self.pipeline = pipeline
            self.reporter = reporter
            self.control = control
        }
    }
}

/// Applies a changed latency to the pipeline, on the control queue: not allowed on the thread that announces it.
private final class LatencyReaction: Sendable {
    private struct Target: Sendable {
        weak var pipeline: Pipeline?
    }

    private let target = Mutex(Target())
    private let control: DispatchQueue

    init(_ control: DispatchQueue) {
        self.control = control
    }

    func set(_ pipeline: Pipeline) {
        target.withLock { $0.pipeline = pipeline }
    }

    func react() {
        control.async { self.target.withLock { $0.pipeline }?.distributeLatency() }
    }
}

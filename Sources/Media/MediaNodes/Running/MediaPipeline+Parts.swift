import Dispatch
import GStreamerKit
import MediaGraph

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
            let running = WeakBox<Pipeline>()
            let pipeline = Pipeline { message in
                switch message {
                case .endOfStream: reporter.ended()
                case .error(let failure): translator.report(failure)
                case .warning(let path, let message): translator.warn(path, message)
                case .missingPlugin(let name): translator.note(missing: name)
                // The message comes on a streaming thread.
                case .latencyChanged: control.async { running.value?.distributeLatency() }
                }
            }
            running.set(pipeline)
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

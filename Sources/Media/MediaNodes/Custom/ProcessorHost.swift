import GStreamerKit
import MediaGraph
import Synchronization

/// Runs a Swift processor, like a frame function.
enum ProcessorHost {
    static func implementation<Kind: Processor>(_ type: Kind.Type) -> NodeImplementation {
        NodeImplementation(
            kind: CustomNode.processor(type).kind,
            plan: { (request) throws(MediaError) in
                _ = try Kind(request.node.settings)
                return try FrameFunctionNode.plan(request)
            },
            activate: { (instance) throws(MediaError) in
                let processor = try Kind(instance.plan.node.settings)
                let reporter = instance.reporter
                let name = instance.name
                let state = Mutex<Kind?>(processor)
                return FrameFunctionNode(instance, settings: processor) { picture in
                    // Only one streaming thread calls this, so the lock is never contended.
                    state.withLock { working in
                        do {
                            try working?.process(&picture)
                        } catch {
                            working = nil
                            reporter.fail(MediaError(thrown: error, by: name), name)
                        }
                    }
                }
            })
    }
}

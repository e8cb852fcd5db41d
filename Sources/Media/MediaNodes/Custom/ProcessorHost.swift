import GStreamerKit
import MediaGraph
import Synchronization

/// Runs a Swift processor, like a frame function.
enum ProcessorHost {
    /// The graph makes a value for each node.
    static func implementation<Kind: Processor>(
        _ type: Kind.Type, _ make: @escaping @Sendable () -> any Processor
    ) -> NodeImplementation {
        implementation(Kind.kind(make().contracts), NodeValues<Kind>(madeBy: make))
    }

    /// The program has made the value.
    static func implementation<Kind: Processor>(_ value: Kind) -> NodeImplementation {
        implementation(Kind.kind(value.contractsOfValue), NodeValues(value))
    }

    private static func implementation<Kind: Processor>(
        _ kind: NodeKind, _ values: NodeValues<Kind>
    ) -> NodeImplementation {
        NodeImplementation(
            kind: kind,
            plan: { (request) throws(MediaError) in
                _ = try values.planned(request.node.settings)
                return try FrameFunctionNode.plan(request)
            },
            activate: { (instance) throws(MediaError) in
                let processor = try values.begun(instance.plan.node.settings)
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

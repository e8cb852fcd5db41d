import GStreamerKit
import MediaGraph
import Synchronization

/// Runs a Swift processor, like a frame function.
enum ProcessorHost {
    /// The graph makes a value for each node.
    static func implementation<Kind: Processor>(
        _ type: Kind.Type, _ make: @escaping @Sendable () -> any Processor
    ) -> NodeImplementation {
        implementation(Kind.kind(make().contracts)) { (settings) throws(MediaError) in
            try Kind.made(make(), settings)
        }
    }

    /// The program has made the value.
    static func implementation<Kind: Processor>(_ value: Kind) -> NodeImplementation {
        implementation(
            Kind.kind(value.contractsOfValue),
            begin: { (settings) throws(MediaError) in
                try value.setLive(settings)
            }
        ) { _ in value }
    }

    /// - Parameter begin: called with the settings of the plan before a node begins.
    private static func implementation<Kind: Processor>(
        _ kind: NodeKind,
        begin: @escaping @Sendable ([String: SettingValue]) throws(MediaError) -> Void = { _ in },
        _ value: @escaping @Sendable ([String: SettingValue]) throws(MediaError) -> Kind
    ) -> NodeImplementation {
        NodeImplementation(
            kind: kind,
            plan: { (request) throws(MediaError) in
                _ = try value(request.node.settings)
                return try FrameFunctionNode.plan(request)
            },
            activate: { (instance) throws(MediaError) in
                try begin(instance.plan.node.settings)
                let processor = try value(instance.plan.node.settings)
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

internal import MediaGraph
internal import MediaNodes

/// A pipeline, as far as local media uses it.
protocol CapturePipeline: AnyObject, Sendable {
    /// Whether it has started, and has not ended, failed or stopped.
    var isRunning: Bool { get }
    var plan: GraphPlan { get }
    var statistics: MediaStatistics { get }
    /// Why sources show stand-ins, by the name of the node.
    var absences: [String: MediaError] { get }
    /// The control of the process that feeds the source. Nil if the source is not a feed.
    var sourceFeed: FrameFeedControl? { get }
    func begin() async throws(MediaError)
    /// Replaces the graph. Throws if that is impossible; the graph then runs unchanged. `stop` ends it early.
    ///
    /// - Parameter needsDevices: whether a new source whose device is away is an error.
    func edit(_ graph: MediaGraph, _ bindings: NodeBindings, needsDevices: Bool) async throws(MediaError)
    func stop() async
}

extension MediaPipeline: CapturePipeline {
    /// How long the new nodes of an edit may take for their first frames. Cameras need seconds.
    private static let editSeconds = 8.0

    package var isRunning: Bool { state == .running }

    var sourceFeed: FrameFeedControl? { frameFeed(MediaRequest.sourceNode) }

    func edit(_ graph: MediaGraph, _ bindings: NodeBindings, needsDevices: Bool) async throws(MediaError) {
        try await apply(graph, bindings: bindings, within: Self.editSeconds, needsDevices: needsDevices)
    }
}

/// The machine as local media uses it. Tests replace it.
struct CaptureMachine: Sendable {
    /// Checks that the sources of a request exist, without opening them for capture.
    var inspect: @Sendable (MediaRequest) async throws(MediaError) -> MediaRequest.Contents
    var makePipeline: @Sendable (MediaGraph, NodeBindings, NodeRegistry) async throws(MediaError) -> any CapturePipeline
    /// Plans a graph without running it, and without capturing from its camera.
    var plan: @Sendable (MediaGraph, NodeRegistry) async throws -> GraphPlan

    /// Whether the machine can process the audio of a microphone. Nil if that does not matter.
    var processesVoice: @Sendable () async -> Bool? = { nil }

    /// The codec of video that has to be encoded if nobody has asked for one.
    var preferredCodec: @Sendable () async -> VideoCodec = { .vp8 }

    private static let hasVoiceProcessor = Task.detached {
        let found = try? await offPoolInTime("The search for webrtcdsp") { () throws(MediaError) in
            SystemEnvironment().hasElement("webrtcdsp")
        }
        return found ?? false
    }

    static let this = CaptureMachine(
        inspect: { request throws(MediaError) in
            try await offPoolInTime("The check of the sources") { () throws(MediaError) in try request.inspect() }
        },
        makePipeline: { graph, bindings, registry throws(MediaError) in
            try await MediaPipeline(graph, bindings: bindings, registry: registry)
        },
        plan: { graph, registry in
            var environment = SystemEnvironment()
            environment.mayCapture = false
            return try await offPoolInTime("The plan") { [environment] () throws(MediaError) in
                try Planner(registry, environment).plan(graph)
            }
        },
        processesVoice: { await hasVoiceProcessor.value },
        preferredCodec: {
            let found = try? await offPoolInTime("The choice of a codec") { () throws(MediaError) in
                VideoCodec.preferred(on: SystemEnvironment())
            }
            return found ?? .vp8
        })
}

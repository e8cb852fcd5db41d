import GStreamerKit
import MediaGraph

/// Runs a Swift renderer.
enum RendererHost {
    /// How many frames or buffers may wait for a busy renderer.
    private static let waiting = 2

    /// The graph makes a value for each node.
    static func implementation<Kind: Renderer>(
        _ type: Kind.Type, _ make: @escaping @Sendable () -> any Renderer
    ) -> NodeImplementation {
        implementation(Kind.kind(make().contracts), NodeValues<Kind>(madeBy: make))
    }

    /// The program has made the value.
    static func implementation<Kind: Renderer>(_ value: Kind) -> NodeImplementation {
        implementation(Kind.kind(value.contractsOfValue), NodeValues(value))
    }

    private static func implementation<Kind: Renderer>(
        _ kind: NodeKind, _ values: NodeValues<Kind>
    ) -> NodeImplementation {
        NodeImplementation(
            kind: kind,
            plan: { (request) throws(MediaError) in
                _ = try values.planned(request.node.settings)
                var plan = NodePlan.sink(request)
                if Kind.Media.port.kinds == [.rawVideo] {
                    // Without this, the sink would accept any format.
                    plan.addFilter(RawFormat.video, as: "pictures")
                    plan.link("pictures", "sink")
                    plan.inputs["in"] = ElementPad("pictures")
                }
                plan.notes.append("up to \(waiting) frames or buffers wait while it is busy")
                return plan
            },
            activate: { (instance) throws(MediaError) in
                let renderer = try values.begun(instance.plan.node.settings)
                let (stream, input) = AsyncStream.makeStream(
                    of: Kind.Media.self, bufferingPolicy: .bufferingNewest(waiting))
                let hasEnded = AtomicBool()
                let end: @Sendable () -> Void = {
                    hasEnded.raise()
                    input.finish()
                }
                instance.element("sink").sink.onEndOfStream(end)
                let watching: any RunningNode =
                    Kind.Media.port.kinds == [.rawAudio]
                    ? AudioRendererNode(instance, isAudible: false) { chunk in
                        if let chunk = chunk as? Kind.Media { input.yield(chunk) }
                    }
                    : VideoRendererNode(instance) { frame in
                        if let frame = frame as? Kind.Media { input.yield(frame) }
                    }
                return RendererNode(
                    renderer: renderer, media: RenderStream(stream), counting: watching, task: NodeTask(instance),
                    end: end
                ) { [reporter = instance.reporter, name = instance.name] in
                    if hasEnded.value { return }
                    input.finish()
                    reporter.warn(
                        name,
                        "\"\(name)\" returned, although its media goes on, and shows nothing more. Its author should read the "
                            + "media to its end, or throw an error. [node.ended]")
                }
            })
    }
}

private struct RendererNode<Kind: Renderer>: RunningNode {
    let renderer: Kind
    let media: RenderStream<Kind.Media>
    /// Counts what reaches the node.
    let counting: any RunningNode
    let task: NodeTask
    let end: @Sendable () -> Void
    /// Called when the renderer has returned.
    let onReturn: @Sendable () -> Void

    func prepare() {
        task.start { [renderer, media, onReturn] in
            try await renderer.render(media)
            onReturn()
            // Waiting frames would hold the memory of a device.
            for await _ in media {}
        }
    }

    /// Waiting media is still rendered if that is fast. Then the task is cancelled.
    func stopped() {
        end()
        task.stop(grace: 0.25)
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        counting.report(into: &statistics, as: name)
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        try renderer.set(setting, to: value)
        return true
    }
}

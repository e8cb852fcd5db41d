import GStreamerKit
package import MediaGraph

/// Mixes audio. Each input has a queue with its own thread. If one delivers nothing, the others continue.
package enum AudioMixerNode: NodeType {
    package static let kind = NodeKind.audioMixer

    /// The length of an output buffer, in seconds.
    private static let block = 0.01

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("audiomixer")
        let wait = request.integer("latency") ?? 20
        var plan = NodePlan(request.node)
        plan.add(
            "audiomixer", as: "mix",
            [
                "latency": .integer(wait * 1_000_000), "start-time-selection": "first",
                "output-buffer-duration": .integer(Int(block * 1e9)),
            ])
        plan.addFilter(RawFormat.audio, as: "format")
        plan.link("mix", "format")
        for (port, _) in request.inputs {
            plan.addQueue(as: port, .rawSound, holding: nil)
            plan.link(ElementPad(port), ElementPad("mix", "sink_\(port.dropFirst(2))"))
            plan.inputs[port] = ElementPad(port)
        }
        plan.outputs["out"] = ElementPad("format")
        plan.formats["out"] = .rawAudio
        plan.latency = block
        plan.allowances["out"] = Double(wait) / 1000 + block
        plan.notes.append(
            "\(request.inputs.count) inputs are mixed; a late one delays the others by at most \(wait) ms"
        )
        return plan
    }
}

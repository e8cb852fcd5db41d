import GStreamerKit
package import MediaGraph

/// Adds sounds up. Each input has a queue and so a thread of its own; where one gives nothing, the others go on.
package enum AudioMixerNode: NodeType {
    package static let kind = NodeKind.audioMixer

    /// What comes out at once, in seconds.
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
            "\(request.inputs.count) sounds become one; where one comes late the others wait \(wait) ms for it, then go on"
        )
        return plan
    }
}

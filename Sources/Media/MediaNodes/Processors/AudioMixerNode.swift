import GStreamerKit
public import MediaGraph

/// Mixes audio. Each input has a queue with its own thread. If one delivers nothing, the others continue.
package enum AudioMixerNode: NodeType {
    package static let kind = NodeKind(
        "audio-mixer", .processor, "Mixes audio; an input that stalls or ends does not stop the others",
        inputs: [Port("in", [.rawAudio], isRepeated: true)], outputs: .rawAudioOut,
        settings: [
            SettingContract(
                "latency", .integer(0...1000), default: 20, unit: "ms",
                "Longest delay of an input after the first one; at least the longest buffer")
        ])

    /// The length of an output buffer, in seconds.
    private static let block = 0.01

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("audiomixer")
        let wait = request.integer("latency")
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

extension Node {
    /// Mixes the audio of the inputs `in1`, `in2` and so on.
    public static func audioMixer(_ name: String = "audio-mixer") -> Node {
        Node(AudioMixerNode.kind, name)
    }
}

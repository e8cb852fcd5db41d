import GStreamerKit
public import MediaGraph

/// Changes the volume. Both settings are properties of the element, which the runner sets while audio passes.
package enum VolumeNode: NodeType {
    package static let kind = NodeKind(
        "volume", .processor, "Changes the volume of audio", inputs: .rawAudioIn, outputs: .rawAudioOut,
        settings: [
            SettingContract(
                "volume", .number(0...10), default: 1, isChangeable: true,
                "Factor for samples: 0 is silence, 1 is unchanged, 2 is 6 dB louder"),
            SettingContract("mute", .flag, default: false, isChangeable: true, "Whether to mute the audio"),
        ])

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.add(
            "volume", as: "volume",
            ["volume": .number(request.number("volume")), "mute": .flag(request.flag("mute"))])
        plan.inputs["in"] = ElementPad("volume")
        plan.outputs["out"] = ElementPad("volume")
        plan.formats["out"] = .rawAudio
        return plan
    }
}

extension Node {
    /// Multiplies samples by `volume`.
    public static func volume(_ name: String = "volume", volume: Double? = nil, mute: Bool? = nil) -> Node {
        Node(VolumeNode.kind, name, ["volume": volume, "mute": mute])
    }
}

import GStreamerKit
package import MediaGraph

/// Changes the volume. Both settings are properties of the element, which the runner sets while audio passes.
package enum VolumeNode: NodeType {
    package static let kind = NodeKind.volume

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.add(
            "volume", as: "volume",
            ["volume": .number(request.number("volume") ?? 1), "mute": .flag(request.flag("mute"))])
        plan.inputs["in"] = ElementPad("volume")
        plan.outputs["out"] = ElementPad("volume")
        plan.formats["out"] = .rawAudio
        return plan
    }
}

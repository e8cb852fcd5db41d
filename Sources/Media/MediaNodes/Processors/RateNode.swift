import GStreamerKit
public import MediaGraph

/// Changes the frame rate.
package enum RateNode: NodeType {
    package static let kind = NodeKind(
        "rate", .processor, "Changes the frame rate", inputs: .rawVideoIn, outputs: .rawVideoOut,
        settings: [
            SettingContract("fps", .number(1...240), isRequired: true, unit: "frames/s", "Output frame rate")
                .example(15),
            SettingContract(
                "repeat", .flag,
                "Whether to repeat frames if too few arrive, at one frame of latency (default: only if the input rate "
                    + "is lower or unknown)"),
        ])

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let rate = request.number("fps")
        var format = request.input("in") ?? .rawVideo()
        var plan = NodePlan(request.node)
        let repeats = request.isGiven("repeat") ? request.flag("repeat") : nil
        plan.addRate(rate, from: format.framesPerSecond, repeats: repeats)
        plan.addFilter("video/x-raw,framerate=\(fraction(rate))", as: "format")
        plan.link("rate", "format")
        plan.inputs["in"] = ElementPad("rate")
        plan.outputs["out"] = ElementPad("format")
        format.framesPerSecond = rate
        plan.formats["out"] = format
        return plan
    }
}

extension NodePlan {
    /// Adds the element `rate`. Without `repeats`, it repeats frames only if the input rate is lower or unknown.
    mutating func addRate(_ rate: Double, from given: Double?, repeats: Bool? = nil) {
        let repeats = repeats ?? given.map { $0 < rate } ?? true
        add("videorate", as: "rate", ["skip-to-first": true, "drop-only": .flag(!repeats)])
        if repeats {
            // The nearest frame is known only when the next one has arrived.
            latency += 1 / (given ?? rate)
            notes.append(
                "frames are repeated if too few arrive, which adds one frame of latency"
            )
        } else {
            notes.append("frames are dropped but never repeated, so that none waits for the next")
        }
    }
}

extension Node {
    /// Changes the frame rate. Without `repeats`, frames are repeated only if too few arrive.
    public static func rate(_ name: String = "rate", framesPerSecond: Double, repeats: Bool? = nil) -> Node {
        Node(RateNode.kind, name, ["fps": framesPerSecond, "repeat": repeats])
    }
}

import GStreamerKit
package import MediaGraph

/// Gives pictures at another rate.
package enum RateNode: NodeType {
    package static let kind = NodeKind.rate

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        guard let rate = request.number("fps") else { preconditionFailure("the rate must be given") }
        var format = request.input("in") ?? .rawVideo()
        let given = format.framesPerSecond
        let repeats = request.isGiven("repeat") ? request.flag("repeat") : given.map { $0 < rate } ?? true
        format.framesPerSecond = rate
        var plan = NodePlan(request.node)
        plan.add("videorate", as: "rate", ["skip-to-first": true, "drop-only": .flag(!repeats)])
        plan.addFilter("video/x-raw,framerate=\(fraction(rate))", as: "format")
        plan.link("rate", "format")
        plan.inputs["in"] = ElementPad("rate")
        plan.outputs["out"] = ElementPad("format")
        plan.formats["out"] = format
        if repeats {
            // Which picture is nearest is known when the next one is there.
            plan.latency = 1 / (given ?? rate)
            plan.notes.append(
                "pictures are repeated where too few come, which costs one frame of latency: the next picture is waited for"
            )
        } else {
            plan.notes.append("pictures are only left out, never repeated, so that none has to wait for the next")
        }
        return plan
    }
}

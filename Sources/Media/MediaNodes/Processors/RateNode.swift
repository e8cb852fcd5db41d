import GStreamerKit
package import MediaGraph

/// Gives pictures at another rate.
package enum RateNode: NodeType {
    package static let kind = NodeKind.rate

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        guard let rate = request.number("fps") else { preconditionFailure("the rate must be given") }
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
    /// Adds the element `rate`. Without `repeats` it repeats pictures only where fewer come, or nobody knows how many come.
    mutating func addRate(_ rate: Double, from given: Double?, repeats: Bool? = nil) {
        let repeats = repeats ?? given.map { $0 < rate } ?? true
        add("videorate", as: "rate", ["skip-to-first": true, "drop-only": .flag(!repeats)])
        if repeats {
            // Which picture is nearest is known when the next one is there.
            latency += 1 / (given ?? rate)
            notes.append(
                "pictures are repeated where too few come, which costs one frame of latency: the next picture is waited for"
            )
        } else {
            notes.append("pictures are only left out, never repeated, so that none has to wait for the next")
        }
    }
}

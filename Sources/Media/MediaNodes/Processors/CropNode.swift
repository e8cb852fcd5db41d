import GStreamerKit
package import MediaGraph

/// Crops frames at their edges, or to an aspect ratio.
package enum CropNode: NodeType {
    package static let kind = NodeKind.crop

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? .rawVideo()
        var plan = NodePlan(request.node)
        if request.isGiven("shape") {
            try planShape(request, input, &plan)
        } else {
            try planEdges(request, input, &plan)
        }
        plan.addFilter(RawFormat.video, as: "format")
        plan.link("crop", "format")
        plan.inputs["in"] = ElementPad("crop")
        plan.outputs["out"] = ElementPad("format")
        return plan
    }

    private static func planEdges(
        _ request: NodeRequest, _ input: MediaFormat, _ plan: inout NodePlan
    ) throws(MediaError) {
        let edges = ["left", "right", "top", "bottom"].map { ($0, request.integer($0) ?? 0) }
        plan.add("videocrop", as: "crop", Dictionary(uniqueKeysWithValues: edges.map { ($0, .integer($1)) }))
        let sides = edges[0].1 + edges[1].1
        let ends = edges[2].1 + edges[3].1
        var format = input
        if let width = input.width, let height = input.height {
            guard sides < width, ends < height else {
                throw MediaError(
                    code: MediaError.Code.settingUnusable,
                    message:
                        "\"\(request.name)\" crops \(sides) by \(ends) pixels off frames of \(width)x\(height), which "
                        + "leaves nothing. Use smaller left, right, top and bottom.")
            }
            format.width = width - sides
            format.height = height - ends
        }
        plan.formats["out"] = format
    }

    private static func planShape(
        _ request: NodeRequest, _ input: MediaFormat, _ plan: inout NodePlan
    ) throws(MediaError) {
        let text = request.text("shape")
        let parts = text.split(separator: ":").map { Int($0) ?? 0 }
        guard parts.count == 2, parts.allSatisfy({ (1...10_000).contains($0) }) else {
            throw MediaError(
                code: MediaError.Code.settingUnusable,
                message:
                    "\"\(request.name)\": the shape \"\(text)\" is invalid. Write width to height, such as 16:9.")
        }
        guard !["left", "right", "top", "bottom"].contains(where: request.isGiven) else {
            throw MediaError(
                code: MediaError.Code.settingUnusable,
                message:
                    "\"\(request.name)\" has both a shape and edges. Set one of them, or use two crop nodes.")
        }
        plan.add("aspectratiocrop", as: "crop", ["aspect-ratio": .text("\(parts[0])/\(parts[1])")])
        var format = input
        if let width = input.width, let height = input.height {
            // The element crops the side that is too long, by the same number of pixels at both ends.
            if width * parts[1] > height * parts[0] {
                format.width = width - (width * parts[1] - height * parts[0]) / parts[1] / 2 * 2
            } else {
                format.height = height - (height * parts[0] - width * parts[1]) / parts[0] / 2 * 2
            }
            plan.notes.append("the middle of the frame is kept")
        }
        plan.formats["out"] = format
    }
}

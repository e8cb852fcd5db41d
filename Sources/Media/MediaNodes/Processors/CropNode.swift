import GStreamerKit
public import MediaGraph

/// Crops frames at their edges, or to an aspect ratio.
package enum CropNode: NodeType {
    fileprivate static let edges = ["left", "right", "top", "bottom"]
    package static let kind = NodeKind(
        "crop", .processor, "Crops frames at their edges, or to an aspect ratio",
        inputs: .rawVideoIn, outputs: .rawVideoOut,
        settings: edges.map {
            SettingContract(
                $0, .integer(0...8192), default: 0, isChangeable: true, unit: "pixels", "Pixels to remove at the \($0)")
        } + [
            SettingContract("shape", .text, "Aspect ratio; the middle is kept")
                .written(#"(?:[1-9][0-9]{0,3}|10000):(?:[1-9][0-9]{0,3}|10000)"#, "width to height, such as 16:9")
                .excluding(edges)
        ])

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

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        RunningCrop(instance.name, instance.element("crop"))
    }

    private static func planEdges(
        _ request: NodeRequest, _ input: MediaFormat, _ plan: inout NodePlan
    ) throws(MediaError) {
        let pixels = edges.reduce(into: [:]) { $0[$1] = request.integer($1) }
        plan.add("videocrop", as: "crop", pixels.mapValues { .integer($0) })
        var format = input
        if let width = input.width, let height = input.height {
            (format.width, format.height) = try size(width, height, without: pixels, of: request.name)
        }
        plan.formats["out"] = format
    }

    /// The size of a frame without these pixels at its edges. Throws `graph.setting-unusable` if nothing is left.
    fileprivate static func size(
        _ width: Int, _ height: Int, without pixels: [String: Int], of node: String
    ) throws(MediaError) -> (width: Int, height: Int) {
        let sides = pixels["left", default: 0] + pixels["right", default: 0]
        let ends = pixels["top", default: 0] + pixels["bottom", default: 0]
        guard sides < width, ends < height else {
            throw MediaError(
                code: MediaError.Code.settingUnusable,
                message:
                    "\"\(node)\" crops \(sides) by \(ends) pixels off frames of \(width)x\(height), which leaves "
                    + "nothing. Use smaller left, right, top and bottom.")
        }
        return (width - sides, height - ends)
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
        guard !edges.contains(where: request.isGiven) else {
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

/// Refuses live settings that the element accepts and then fails at.
private final class RunningCrop: RunningNode {
    let name: String
    private let crop: Element

    init(_ name: String, _ crop: Element) {
        self.name = name
        self.crop = crop
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard crop.has(setting) else {
            throw MediaError(
                code: MediaError.Code.settingUnusable,
                message: "\"\(name)\" has a shape, so its \(setting) cannot change. Use two crop nodes.")
        }
        var pixels = CropNode.edges.reduce(into: [:]) { $0[$1] = crop.integer($1) }
        pixels[setting] = value.integer
        if let format = crop.sink.caps?.structures.first, let width = format.integer("width"),
            let height = format.integer("height")
        {
            _ = try CropNode.size(width, height, without: pixels, of: name)
        }
        return false
    }
}

extension Node {
    /// Removes pixels at the edges.
    public static func crop(
        _ name: String = "crop", left: Int? = nil, right: Int? = nil, top: Int? = nil, bottom: Int? = nil
    ) -> Node {
        Node(CropNode.kind, name, ["left": left, "right": right, "top": top, "bottom": bottom])
    }

    /// Crops to an aspect ratio such as `16:9`, and keeps the middle.
    public static func crop(_ name: String = "crop", shape: String) -> Node {
        Node(CropNode.kind, name, ["shape": shape])
    }
}

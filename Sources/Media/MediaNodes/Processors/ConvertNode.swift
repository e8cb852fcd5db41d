import GStreamerKit
import MediaGraph

/// Changes the pixel format of frames.
enum ConvertNode: NodeType {
    static let kind = NodeKind.convert

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var format = request.input("in") ?? .rawVideo()
        let given = format.encoding
        format.encoding = request.text("pixel-format")
        var plan = NodePlan(request.node)
        plan.add("videoconvert", as: "convert")
        plan.addFilter("video/x-raw,format=\(format.encoding)", as: "format")
        plan.link("convert", "format")
        plan.inputs["in"] = ElementPad("convert")
        plan.outputs["out"] = ElementPad("format")
        plan.formats["out"] = format
        plan.notes.append("frames are converted from \(given) to \(format.encoding)")
        return plan
    }
}

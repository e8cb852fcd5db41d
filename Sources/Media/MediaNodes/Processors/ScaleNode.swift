import GStreamerKit
import MediaGraph

/// Changes size or rate. With only one of width and height, the other keeps the aspect ratio.
enum ScaleNode: NodeType {
    static let kind = NodeKind.scale

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? .rawVideo()
        let (width, height) = size(request, of: input)
        let fps = request.number("fps")
        var plan = NodePlan(request.node)
        plan.add("videoscale", as: "scale")
        var caps = RawFormat.video
        if let width = request.integer("width") { caps += ",width=\(width)" }
        if let height = request.integer("height") { caps += ",height=\(height)" }
        if request.isGiven("width") || request.isGiven("height") { caps += ",pixel-aspect-ratio=1/1" }
        if let fps, fps != input.framesPerSecond { caps += ",framerate=\(fraction(fps))" }
        plan.addFilter(caps, as: "format")
        if fps == nil || fps == input.framesPerSecond {
            plan.link("scale", "format")
            plan.inputs["in"] = ElementPad("scale")
        } else if let fps {
            plan.addRate(fps, from: input.framesPerSecond)
            plan.link("rate", "scale", "format")
            plan.inputs["in"] = ElementPad("rate")
        }
        plan.outputs["out"] = ElementPad("format")
        plan.formats["out"] = .rawVideo(width: width, height: height, framesPerSecond: fps ?? input.framesPerSecond)
        return plan
    }

    /// The output size, if it is known.
    private static func size(_ request: NodeRequest, of input: MediaFormat) -> (width: Int?, height: Int?) {
        switch (request.integer("width"), request.integer("height"), input.width, input.height) {
        case (let width?, let height?, _, _): (width, height)
        case (let width?, nil, let inWidth?, let inHeight?): (width, width * inHeight / inWidth)
        case (nil, let height?, let inWidth?, let inHeight?): (height * inWidth / inHeight, height)
        case (nil, nil, let inWidth, let inHeight): (inWidth, inHeight)
        case (let width, let height, _, _): (width, height)
        }
    }
}

import GStreamerKit
public import MediaGraph

/// Changes size or rate. With only one of width and height, the other keeps the aspect ratio.
enum ScaleNode: NodeType {
    static let kind = NodeKind(
        "scale", .processor, "Changes the frame size or frame rate", inputs: .rawVideoIn, outputs: .rawVideoOut,
        settings: [
            SettingContract("width", .integer(16...8192), unit: "pixels", "Width (default: unchanged)")
                .example(640),
            SettingContract("height", .integer(16...8192), unit: "pixels", "Height (default: unchanged)"),
            SettingContract("fps", .number(1...240), unit: "frames/s", "Frame rate (default: unchanged)"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? .rawVideo()
        let (width, height) = size(request, of: input)
        let fps = request.optionalNumber("fps")
        var plan = NodePlan(request.node)
        plan.add("videoscale", as: "scale")
        var caps = RawFormat.video
        if let width = request.optionalInteger("width") { caps += ",width=\(width)" }
        if let height = request.optionalInteger("height") { caps += ",height=\(height)" }
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
        switch (request.optionalInteger("width"), request.optionalInteger("height"), input.width, input.height) {
        case (let width?, let height?, _, _): (width, height)
        case (let width?, nil, let inWidth?, let inHeight?): (width, width * inHeight / inWidth)
        case (nil, let height?, let inWidth?, let inHeight?): (height * inWidth / inHeight, height)
        case (nil, nil, let inWidth, let inHeight): (inWidth, inHeight)
        case (let width, let height, _, _): (width, height)
        }
    }
}

extension Node {
    /// Changes the size or frame rate. Nil values stay unchanged.
    public static func scale(
        _ name: String = "scale", width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil
    ) -> Node {
        Node(ScaleNode.kind, name, ["width": width, "height": height, "fps": framesPerSecond])
    }
}

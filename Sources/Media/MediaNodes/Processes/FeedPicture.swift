import FrameSocket
import GStreamerKit
import MediaGraph

/// What a node's settings say of the pictures that come from elsewhere.
struct FeedPicture: Sendable {
    let name: String
    let width: Int
    let height: Int
    let framesPerSecond: Double

    init(_ value: (String) -> SettingValue?) {
        guard let name = value("format")?.text, let width = value("width")?.integer,
            let height = value("height")?.integer, let rate = value("fps")?.number
        else { preconditionFailure("the settings of pictures from elsewhere have defaults") }
        (self.name, self.width, self.height, framesPerSecond) = (name, width, height, rate)
    }

    var encoding: FrameFormat.Encoding {
        switch name {
        case "h264": .h264
        case "vp8": .vp8
        case "mjpeg": .mjpeg
        default: FrameFormat.Encoding(rawValue: name) ?? .i420
        }
    }

    /// What the other end is told.
    var wanted: FrameFormat {
        let rate = fraction(framesPerSecond).split(separator: "/").compactMap { Int($0) }
        return FrameFormat(
            encoding, width: width, height: height, rateNumerator: rate.first ?? 30, rateDenominator: rate.last ?? 1)
    }

    var format: MediaFormat {
        encoding.isRaw
            ? .rawVideo(name, width: width, height: height, framesPerSecond: framesPerSecond)
            : MediaFormat(.encodedVideo, name, width: width, height: height, framesPerSecond: framesPerSecond)
    }

    /// Of what enters the graph.
    var caps: String { caps(width: width, height: height) }

    func caps(width: Int, height: Int) -> String {
        let size = "width=\(width),height=\(height),framerate=\(fraction(framesPerSecond))"
        return switch encoding {
        case .h264: "video/x-h264,stream-format=byte-stream,alignment=au,\(size)"
        case .vp8: "video/x-vp8,\(size)"
        case .mjpeg: "image/jpeg,\(size)"
        default: "video/x-raw,format=\(name),\(size)"
        }
    }

    private var limits: QueuePlan.Limits {
        switch encoding {
        case .h264, .vp8: PushQueue.encodedLimits
        // Each JPEG can be decoded alone.
        default: .rawPictures
        }
    }

    /// The elements that bring such pictures into a graph: `source` and, where need be, what makes them fit to be used.
    func plan(_ request: NodeRequest, isScaled: Bool = false) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        PushQueue.plan(&plan, caps: caps, limits, holding: format)
        switch encoding {
        case .h264:
            try request.environment.require("h264parse")
            // Says the profile, and repeats the parameter sets for whoever joins later.
            plan.add("h264parse", as: "parser", ["config-interval": -1])
            plan.addFilter("video/x-h264,stream-format=byte-stream,alignment=au", as: "format")
            plan.link("source", "parser", "format")
        case .mjpeg:
            try request.environment.require("jpegparse")
            plan.add("jpegparse", as: "parser")
            plan.addFilter("image/jpeg", as: "format")
            plan.link("source", "parser", "format")
        case .vp8:
            break
        default:
            guard isScaled else { break }
            plan.add("videoscale", as: "scale", ["add-borders": true])
            plan.addFilter(RawFormat.video(format), as: "format")
            plan.link("source", "scale", "format")
        }
        plan.outputs["video"] = ElementPad(plan.element("format") == nil ? "source" : "format")
        plan.formats["video"] = format
        return plan
    }
}

import FrameSocket
import GStreamerKit
import MediaGraph

/// The frame format in the settings of a fed node.
struct FeedPicture: Sendable {
    let name: String
    let width: Int
    let height: Int
    let framesPerSecond: Double

    // MARK: Contract

    /// The formats of frames from other processes; the raw ones first.
    static let formats = ["I420", "NV12", "BGRx", "BGRA", "RGBA", "YUY2", "h264", "vp8", "mjpeg"]

    static func output(_ formats: [String]) -> [Port] {
        [Port("video", [.rawVideo, .encodedVideo], encodings: formats)]
    }

    static func settings(_ formats: [String], _ format: String) -> [SettingContract] {
        [
            SettingContract("format", .choice(formats), default: "I420", format),
            SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width of the frames"),
            SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height of the frames"),
            SettingContract(
                "fps", .number(1...240), default: 30, unit: "frames/s",
                "Highest frame rate; of more than twice as many frames, some wait"),
        ]
    }

    static let scaleSetting = SettingContract(
        "scale", .flag, default: false, "Whether to accept raw frames of other sizes, and scale them")

    static func timeoutSetting(_ summary: String) -> SettingContract {
        SettingContract("timeout", .number(0.5...3600), default: 5, unit: "s", summary)
    }

    init(_ settings: some NodeSettings) {
        name = settings.text("format")
        width = settings.integer("width")
        height = settings.integer("height")
        framesPerSecond = settings.number("fps")
    }

    fileprivate static let codecs: [String: FrameFormat.Encoding] = ["h264": .h264, "vp8": .vp8, "mjpeg": .mjpeg]

    var encoding: FrameFormat.Encoding { Self.codecs[name] ?? FrameFormat.Encoding(rawValue: name) ?? .i420 }

    /// The format for the other end.
    var wanted: FrameFormat {
        let rate = fraction(framesPerSecond).split(separator: "/").compactMap { Int($0) }
        return FrameFormat(
            encoding, width: width, height: height, rateNumerator: rate.first ?? 30, rateDenominator: rate.last ?? 1)
    }

    var format: MediaFormat {
        MediaFormat(
            encoding.isRaw ? .rawVideo : .encodedVideo, name, width: width, height: height,
            framesPerSecond: framesPerSecond)
    }

    /// The caps of frames with another size than the settings.
    func caps(width: Int, height: Int) -> String {
        var format = format
        (format.width, format.height) = (width, height)
        return format.pushedCaps
    }

    /// The elements that bring such frames into a graph: `source` and, downstream of it, a parser or a scaler.
    func plan(_ request: NodeRequest, isScaled: Bool = false) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        // Each JPEG decodes without earlier ones.
        let isPredicted = encoding == .h264 || encoding == .vp8
        try plan.addPushed(
            format, limits: isPredicted ? PushQueue.encodedLimits : .rawPictures, request.environment)
        if encoding.isRaw, isScaled {
            plan.add("videoscale", as: "scale", ["add-borders": true])
            plan.addFilter(RawFormat.video(format), as: "format")
            plan.link("source", "scale", "format")
            plan.outputs["video"] = ElementPad("format")
        }
        return plan
    }

    /// The plan of a node whose frames arrive in memory that it shares with the feeder.
    func planShared(_ request: NodeRequest, note: String) throws(MediaError) -> NodePlan {
        var plan = try plan(request, isScaled: request.flag("scale"))
        plan.notes.append(
            encoding.isRaw
                ? "\(note); raw frames stay in the feeder's memory and are not copied"
                : "\(note); encoded frames are copied once, because they must not change during decoding")
        plan.copiesPerFrame = encoding.isRaw ? 0 : 1
        return plan
    }
}

extension FrameFormat {
    /// The fault in the header of an encoded frame of this format; nil for raw frames. Frames with a fault reach no
    /// decoder.
    func fault(of picture: [UInt8]) -> String? {
        guard let name = FeedPicture.codecs.first(where: { $0.value == encoding })?.key else { return nil }
        let stated = MediaFormat(
            .encodedVideo, name, width: width, height: height, framesPerSecond: framesPerSecond)
        return EncodedHeader.fault(of: picture.span.bytes, as: stated, isKeyframe: nil)
    }
}

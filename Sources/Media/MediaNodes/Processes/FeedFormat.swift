import FrameSocket
import GStreamerKit
import MediaGraph

/// The frame format of a fed node: its settings, and the elements that bring such frames into a graph.
extension FrameFormat {
    // MARK: Contract

    /// The names of all formats of frames from other processes; the raw ones first.
    static let names = Encoding.allCases.map(\.name)

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
                "Maximum frame rate; a program that sends more than twice as many frames is throttled"),
        ]
    }

    static let scaleSetting = SettingContract(
        "scale", .flag, default: false, "Whether to accept raw frames of other sizes and formats, and convert them")

    static func timeoutSetting(_ summary: String) -> SettingContract {
        SettingContract("timeout", .number(0.5...3600), default: 5, unit: "s", summary)
    }

    init(_ settings: some NodeSettings) {
        let name = settings.text("format")
        let rate = fraction(settings.number("fps")).split(separator: "/").compactMap { Int($0) }
        self.init(
            Encoding.allCases.first { $0.name == name } ?? .i420, width: settings.integer("width"),
            height: settings.integer("height"), rateNumerator: rate[0], rateDenominator: rate[1])
    }

    /// The same format as links carry it.
    var media: MediaFormat {
        MediaFormat(
            encoding.isRaw ? .rawVideo : .encodedVideo, encoding.name, width: width, height: height,
            framesPerSecond: framesPerSecond)
    }

    /// The fault in the header of an encoded frame of this format; nil for raw frames. Frames with a fault reach no
    /// decoder.
    func fault(of picture: [UInt8]) -> String? {
        EncodedHeader.fault(of: picture.span.bytes, as: media, isKeyframe: nil)
    }

    // MARK: Plan

    /// The elements that bring such frames into a graph: `source` and, downstream of it, a parser or a scaler.
    func plan(_ request: NodeRequest, isScaled: Bool = false) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        var format = media
        // The rate as it is set, not as a fraction.
        format.framesPerSecond = request.number("fps")
        SourceHead.plan(&plan, format, caps: format.pushedCaps, latency: 0)
        if let codec = format.codec, codec.parser != nil {
            try plan.appendParser(of: codec, request.environment)
        }
        plan.setOutput("video", format)
        var device = DevicePlan(name: request.name, wish: "\(format)")
        if request.text("away") != "end" { device.slate = try Slate.plan(request, format) }
        plan.device = device
        if encoding.isRaw, isScaled {
            plan.add("videoconvertscale", as: "scale", ["add-borders": true])
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

extension FrameFormat.Encoding {
    /// The name in graphs: that of a codec is the name of its case.
    var name: String { isRaw ? rawValue : "\(self)" }
}

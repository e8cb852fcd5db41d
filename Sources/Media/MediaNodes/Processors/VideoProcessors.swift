import GStreamerKit
public import MediaGraph

/// Crops frames at their edges, or to an aspect ratio.
enum CropNode: NodeType {
    fileprivate static let edges = ["left", "right", "top", "bottom"]
    static let kind = NodeKind(
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

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let input = request.input("in") ?? .rawVideo()
        var plan = NodePlan(request.node)
        let format = try request.isGiven("shape") ? planShape(request, input, &plan) : planEdges(request, input, &plan)
        plan.addFilter(RawFormat.video, as: "format")
        plan.chain(to: format)
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        RunningCrop(name: instance.name, crop: instance.element("crop"))
    }

    private static func planEdges(
        _ request: NodeRequest, _ input: MediaFormat, _ plan: inout NodePlan
    ) throws(MediaError) -> MediaFormat {
        let pixels = edges.reduce(into: [:]) { $0[$1] = request.integer($1) }
        plan.add("videocrop", as: "crop", pixels.mapValues { .integer($0) })
        var format = input
        if let width = input.width, let height = input.height {
            (format.width, format.height) = try size(width, height, without: pixels, of: request.name)
        }
        return format
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
    ) throws(MediaError) -> MediaFormat {
        let text = request.text("shape")
        let shape = text.split(separator: ":").compactMap { Int($0) }
        // Validation accepts very long text unmatched.
        guard shape.count == 2, shape.allSatisfy((1...10_000).contains) else {
            throw MediaError(
                code: MediaError.Code.settingUnusable,
                message:
                    "\"\(request.name)\": the shape of \(text.count) characters is invalid. Write width to height, "
                    + "such as 16:9.")
        }
        plan.add("aspectratiocrop", as: "crop", ["aspect-ratio": .text("\(shape[0])/\(shape[1])")])
        var format = input
        if let width = input.width, let height = input.height {
            // The element crops the side that is too long, by the same number of pixels at both ends.
            let excess = width * shape[1] - height * shape[0]
            if excess > 0 {
                format.width = width - excess / shape[1] / 2 * 2
            } else {
                format.height = height + excess / shape[0] / 2 * 2
            }
            plan.notes.append("the middle of the frame is kept")
        }
        return format
    }
}

/// Refuses live settings that the element accepts and then fails at.
private struct RunningCrop: RunningNode {
    let name: String
    let crop: Element

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        try check(setting, to: value)
        return false
    }

    func check(_ setting: String, to value: SettingValue) throws(MediaError) {
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
    }
}

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
        let rate = request.optionalNumber("fps") ?? input.framesPerSecond
        let isRateChanged = rate != input.framesPerSecond
        var plan = NodePlan(request.node)
        if let rate, isRateChanged { plan.addRate(rate, from: input.framesPerSecond) }
        plan.add("videoscale", as: "scale")
        let asked = MediaFormat.rawVideo(
            width: request.optionalInteger("width"), height: request.optionalInteger("height"),
            framesPerSecond: isRateChanged ? rate : nil)
        let isResized = asked.width != nil || asked.height != nil
        plan.addFilter(RawFormat.video(asked) + (isResized ? ",pixel-aspect-ratio=1/1" : ""), as: "format")
        let (width, height) = size(asked, of: input)
        plan.chain(to: .rawVideo(width: width, height: height, framesPerSecond: rate))
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        instance.dropFramesAboveRate()
        return nil
    }

    /// The output size, if it is known.
    private static func size(_ asked: MediaFormat, of input: MediaFormat) -> (width: Int?, height: Int?) {
        switch (asked.width, asked.height, input.width, input.height) {
        case (let width?, let height?, _, _): (width, height)
        case (let width?, nil, let inWidth?, let inHeight?): (width, width * inHeight / inWidth)
        case (nil, let height?, let inWidth?, let inHeight?): (height * inWidth / inHeight, height)
        case (nil, nil, let inWidth, let inHeight): (inWidth, inHeight)
        case (let width, let height, _, _): (width, height)
        }
    }
}

/// Changes the frame rate.
enum RateNode: NodeType {
    static let kind = NodeKind(
        "rate", .processor, "Changes the frame rate", inputs: [Port("in", [.rawVideo])],
        outputs: [Port("out", [.rawVideo])],
        settings: [
            SettingContract("fps", .number(1...240), isRequired: true, unit: "frames/s", "Output frame rate")
                .example(15),
            SettingContract(
                "repeat", .flag,
                "Whether to repeat frames if too few arrive, at one frame of latency (default: only if the input rate "
                    + "is lower or unknown)"),
        ])

    static let repeatedInputs = ["in": "out"]

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let rate = request.number("fps")
        var format = request.input("in") ?? .rawVideo()
        var plan = NodePlan(request.node)
        let repeats = request.isGiven("repeat") ? request.flag("repeat") : nil
        plan.addRate(rate, from: format.framesPerSecond, repeats: repeats)
        plan.addFilter("video/x-raw,framerate=\(fraction(rate))", as: "format")
        format.framesPerSecond = rate
        plan.chain(to: format)
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        instance.dropFramesAboveRate()
        return nil
    }
}

extension NodePlan {
    /// Adds the element `rate`. Without `repeats`, it repeats frames only if the input rate is lower or unknown.
    mutating func addRate(_ rate: Double, from given: Double?, repeats: Bool? = nil) {
        let repeats = repeats ?? given.map { $0 < rate } ?? true
        add("videorate", as: "rate", ["skip-to-first": true, "drop-only": .flag(!repeats)])
        if repeats {
            // The nearest frame is known only when the next one has arrived.
            latency += 1 / (given ?? rate)
            notes.append("frames are repeated if too few arrive, which adds one frame of latency")
        } else {
            notes.append("frames are dropped but never repeated, so that none waits for the next")
        }
    }
}

/// Changes the pixel format of frames.
enum ConvertNode: NodeType {
    /// The formats that GStreamer 1.22 converts to, the usual ones first.
    private static let pixelFormats = """
        I420 NV12 YV12 NV21 YUY2 UYVY YVYU VYUY RGB BGR RGBA BGRA ARGB ABGR RGBx BGRx xRGB xBGR GRAY8 AYUV VUYA \
        Y444 Y42B Y41B A420 NV16 NV24 NV61 P010_10LE I420_10LE I422_10LE Y444_10LE GBR GBRA RGBP BGRP RGB16 BGR16 \
        RGB15 BGR15 RGB8P YVU9 YUV9 IYU1 IYU2 v308 v210 v216 r210 UYVP Y210 Y410 AV12 GRAY16_LE GRAY16_BE GRAY10_LE32 \
        A420_10LE A422_10LE A444_10LE GBR_10LE GBRA_10LE I420_12LE I422_12LE Y444_12LE GBR_12LE GBRA_12LE Y212_LE \
        Y412_LE P012_LE P016_LE Y444_16LE RGB10A2_LE BGR10A2_LE ARGB64 AYUV64 ARGB64_LE RGBA64_LE BGRA64_LE ABGR64_LE \
        P010_10BE I420_10BE I422_10BE Y444_10BE A420_10BE A422_10BE A444_10BE GBR_10BE GBRA_10BE I420_12BE I422_12BE \
        Y444_12BE GBR_12BE GBRA_12BE Y212_BE Y412_BE P012_BE P016_BE Y444_16BE ARGB64_BE RGBA64_BE BGRA64_BE \
        ABGR64_BE NV16_10LE32 NV12_10LE32 NV12_10LE40 NV12_10BE_8L128 NV12_8L128 NV12_64Z32 NV12_4L4 NV12_32L32 \
        NV12_16L32S
        """.split(separator: " ").map(String.init)

    static let kind = NodeKind(
        "convert", .processor, "Changes the pixel format",
        inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.rawVideo])],
        settings: [
            SettingContract(
                "pixel-format", .choice(pixelFormats), default: "I420", "GStreamer's name of the output format")
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var format = request.input("in") ?? .rawVideo()
        let given = format.encoding
        format.encoding = request.text("pixel-format")
        var plan = NodePlan(request.node)
        plan.add("videoconvert", as: "convert")
        plan.addFilter("video/x-raw,format=\(format.encoding)", as: "format")
        plan.chain(to: format)
        plan.notes.append("frames are converted from \(given) to \(format.encoding)")
        return plan
    }
}

/// Swaps left and right, or top and bottom.
enum MirrorNode: FlipNode {
    static let kind = NodeKind(
        "mirror", .processor, "Mirrors frames horizontally or vertically", inputs: .rawVideoIn, outputs: .rawVideoOut,
        settings: [
            SettingContract(
                "direction", Mirroring.Direction.settingDomain, default: "horizontal", isChangeable: true,
                "Whether to swap left and right, or top and bottom")
        ])

    static let directions: [SettingValue: SettingValue] = [
        "horizontal": "horiz", "vertical": "vert", "none": "identity",
    ]
}

/// Rotates frames clockwise.
enum RotateNode: FlipNode {
    static let kind = NodeKind(
        "rotate", .processor, "Rotates frames clockwise", inputs: .rawVideoIn, outputs: .rawVideoOut,
        settings: [
            SettingContract(
                "degrees", .integer(0...270), default: 90, isChangeable: true, unit: "degrees",
                "Angle; 90 and 270 swap width and height"
            ).limited(to: [0, 90, 180, 270])
        ])

    static let directions: [SettingValue: SettingValue] = [0: "identity", 90: "90r", 180: "180", 270: "90l"]
}

/// A node that mirrors or rotates frames as its only setting states.
protocol FlipNode: NodeType {
    /// The directions of `videoflip`, by the value of the setting.
    static var directions: [SettingValue: SettingValue] { get }
}

extension FlipNode {
    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let direction = request.node.setting(kind.settings[0].name, of: kind).flatMap { directions[$0] } ?? "identity"
        var format = request.input("in") ?? .rawVideo()
        if ["90r", "90l"].contains(direction) { (format.width, format.height) = (format.height, format.width) }
        var plan = NodePlan(request.node)
        plan.add("videoflip", as: "flip", ["video-direction": direction])
        plan.addFilter(RawFormat.video, as: "format")
        plan.chain(to: format)
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        RunningFlip(element: instance.element("flip"), directions: directions)
    }
}

private struct RunningFlip: RunningNode {
    let element: Element
    let directions: [SettingValue: SettingValue]

    /// Changes the direction while frames pass. If width and height are swapped, announces new caps downstream.
    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard let direction = directions[value] else { return false }
        try element.set("video-direction", direction)
        return true
    }
}

/// Crops frames at their edges, or to an aspect ratio.
public struct Crop: MediaNode {
    public var handle: NodeHandle

    /// Removes pixels at the edges.
    public init(left: Int? = nil, right: Int? = nil, top: Int? = nil, bottom: Int? = nil) {
        handle = NodeHandle(CropNode.kind, ["left": left, "right": right, "top": top, "bottom": bottom])
    }

    /// Crops to an aspect ratio such as `16:9`, and keeps the middle.
    public init(shape: String) {
        handle = NodeHandle(CropNode.kind, ["shape": shape])
    }

    /// Changes the number of pixels to remove at an edge.
    ///
    /// - Throws: `graph.invalid` for a number out of range; `node.not-running`.
    public func setLeft(_ pixels: Int) async throws(MediaError) { try await change("left", to: pixels) }
    /// Changes the pixels to remove at the right edge. Throws like `setLeft`.
    public func setRight(_ pixels: Int) async throws(MediaError) { try await change("right", to: pixels) }
    /// Changes the pixels to remove at the top edge. Throws like `setLeft`.
    public func setTop(_ pixels: Int) async throws(MediaError) { try await change("top", to: pixels) }
    /// Changes the pixels to remove at the bottom edge. Throws like `setLeft`.
    public func setBottom(_ pixels: Int) async throws(MediaError) { try await change("bottom", to: pixels) }
}

/// Changes the frame size or frame rate. Nil values stay unchanged.
public struct Scale: MediaNode {
    public var handle: NodeHandle

    /// A new size in pixels and a new rate.
    public init(width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil) {
        handle = NodeHandle(ScaleNode.kind, ["width": width, "height": height, "fps": framesPerSecond])
    }
}

/// Changes the frame rate.
public struct Rate: MediaNode {
    public var handle: NodeHandle

    /// A node that drops frames, or repeats them, for a rate.
    ///
    /// - Parameter repeats: whether to repeat frames if too few arrive, at one frame of latency; nil only if the input rate
    ///   is lower or unknown.
    public init(framesPerSecond: Double, repeats: Bool? = nil) {
        handle = NodeHandle(RateNode.kind, ["fps": framesPerSecond, "repeat": repeats])
    }
}

/// Changes the pixel format. The planner inserts one where a node needs it.
public struct Convert: MediaNode {
    public var handle: NodeHandle

    /// A node that converts to a pixel format, or to the one that its reader needs.
    ///
    /// - Parameter pixelFormat: GStreamer's name of the output format, such as `NV12`.
    public init(pixelFormat: String? = nil) {
        handle = NodeHandle(ConvertNode.kind, ["pixel-format": pixelFormat])
    }
}

/// Mirrors frames. Its kind is `mirror`.
public struct Mirroring: MediaNode {
    /// The sides that are swapped.
    public enum Direction: String, SettingChoice {
        /// Swaps left and right.
        case horizontal
        /// Swaps top and bottom.
        case vertical
        /// Swaps nothing.
        case none
    }

    public var handle: NodeHandle

    /// A node that swaps left and right, unless another direction is given.
    public init(_ direction: Direction? = nil) { handle = NodeHandle(MirrorNode.kind, ["direction": direction]) }

    /// Changes the sides that are swapped.
    ///
    /// - Throws: `node.not-running`.
    public func setDirection(_ direction: Direction) async throws(MediaError) {
        try await change("direction", to: direction)
    }
}

/// Rotates frames clockwise.
public struct Rotate: MediaNode {
    public var handle: NodeHandle

    /// A node that turns frames.
    ///
    /// - Parameter degrees: 0, 90, 180 or 270.
    public init(degrees: Int? = nil) { handle = NodeHandle(RotateNode.kind, ["degrees": degrees]) }

    /// Changes the angle to 0, 90, 180 or 270 degrees.
    ///
    /// - Throws: `graph.invalid` for another angle; `node.not-running`.
    public func setDegrees(_ degrees: Int) async throws(MediaError) { try await change("degrees", to: degrees) }
}

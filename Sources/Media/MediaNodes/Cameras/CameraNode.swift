import Cameras
import GStreamerKit
public import MediaGraph

/// A V4L2 camera in the best mode, converted to the requested size and rate, or with its own encoding.
enum CameraNode: NodeType {
    private static let controlPattern = " *[A-Za-z0-9_]+ *= *[+-]?[A-Za-z0-9]+ *"
    /// The values of V4L2's controls. Each camera has its own limits within.
    private static let cameraControl = Int(Int32.min)...Int(Int32.max)

    static let kind = NodeKind(
        "camera", .capturer, "A camera of V4L2 or libcamera, raw or encoded by the camera",
        outputs: [
            Port("video", [.rawVideo, .encodedVideo], encodings: ["I420"] + CameraWish.direct + ["h264", "mjpeg"])
        ],
        settings: [
            SettingContract(
                "device", .text, default: "auto",
                "A name of 'connectlive devices', such as serial:7C3F or front; a path such as /dev/video0, a name of "
                    + "/dev/v4l/by-id, libcamera or libcamera:NAME, fixture:FILE for a recorded camera, or auto for the first free one"
            ),
            SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width of the frames"),
            SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height of the frames"),
            SettingContract("fps", .number(1...240), default: 20, unit: "frames/s", "Frame rate"),
            SettingContract(
                "strict", .flag, default: false,
                "Whether to refuse a camera without a mode of at least this size and rate, instead of scaling"),
            SettingContract("mirror", .flag, default: false, "Whether to mirror raw frames"),
            SettingContract(
                "away", Camera.Away.settingDomain, default: "freeze",
                "Output while the camera is away: the last frame, or a grey slate; end ends the node with an error"),
            SettingContract(
                "failover", .text, "Camera that takes over while the other one is away; written like device"),
        ] + Slate.settings + [
            SettingContract(
                "format", Camera.Format.settingDomain, default: "auto",
                "mjpeg and h264 pass through the camera's encoding; raw avoids both; auto needs the least work for all readers"
            ),
            SettingContract(
                "brightness", .integer(cameraControl), isChangeable: true,
                "Brightness control of the camera"),
            SettingContract("contrast", .integer(cameraControl), isChangeable: true, "Contrast control of the camera"),
            SettingContract(
                "saturation", .integer(cameraControl), isChangeable: true,
                "Saturation control of the camera"),
            SettingContract("hue", .integer(cameraControl), isChangeable: true, "Hue control of the camera"),
            SettingContract(
                "controls", .text, isChangeable: true,
                "Other controls of the camera, by their V4L2 names"
            ).written(
                "(?:\(controlPattern)(?:,\(controlPattern))*,?)?",
                "names and values, such as auto_exposure=1,focus_absolute=30"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let wish = CameraWish(request)
        if let camera = LibCamera(device(of: request)) { return try camera.plan(request, wish) }
        return try planHead(request, wish)
    }

    /// The name of the device. An empty name comes from an unset variable.
    static func device(of settings: some NodeSettings) -> String {
        let device = settings.text("device")
        return device.isEmpty ? "auto" : device
    }

    /// Plans a head that gives the chosen format, with the camera behind it if it is there.
    private static func planHead(_ request: NodeRequest, _ wish: CameraWish) throws(MediaError) -> NodePlan {
        var device = DevicePlan(name: device(of: request), wish: wish.words)
        var promise = MediaFormat(
            MediaKind(ofEncoding: wish.delivered), wish.delivered, width: wish.width, height: wish.height,
            framesPerSecond: wish.framesPerSecond)
        var bound = NodePlan(request.node)
        var absence: MediaError?
        do throws(MediaError) {
            let camera = try FoundCamera(request, wish)
            bound = try planElements(
                request.node, camera.output.mode, camera.wish.promising(camera.output.format), request.environment)
            camera.note(in: &bound)
            promise = camera.output.format
            if promise.kind == .rawVideo { promise.framesPerSecond = wish.framesPerSecond }
            device.take(bound)
        } catch {
            if let plan = LibCamera.plan(insteadOf: error, request, wish) { return plan }
            // One that is optional is left out.
            guard Devices.isAway(error), !request.node.isOptional else { throw error }
            (absence, device.absence) = (error, error.message)
            (bound.resource, bound.latency) = (device.name, 1 / wish.framesPerSecond)
            bound.notes = [device.waiting ?? ""]
        }
        let replacement = try FoundCamera.failover(of: request, beside: bound.resource)
        if let replacement { bound.notes.append(replacement.note) }
        if wish.isKeptUp {
            device.slate = try Slate.plan(request, promise)
        } else if let absence, replacement?.isThere != true {
            throw absence
        }
        var plan = NodePlan(request.node)
        SourceHead.plan(&plan, promise, caps: promise.pushedCaps, latency: 1 / wish.framesPerSecond)
        if promise.kind == .encodedVideo { try planParser(&plan, promise, request.environment) }
        plan.setOutput("video", promise)
        (plan.resource, plan.latency) = (bound.resource, bound.latency)
        (plan.notes, plan.passedOver) = (bound.notes + plan.notes, bound.passedOver)
        plan.device = device
        return plan
    }

    /// Plans the elements for the frames of a mode, which are pushed into `source`. The last one gives frames in the format
    /// that the wish delivers. Those of the camera's own encoding pass as they are; others are decoded, scaled and encoded.
    static func planElements(
        _ node: Node, _ mode: CaptureMode, _ wish: CameraWish, _ environment: any PlanEnvironment
    ) throws(MediaError) -> NodePlan {
        var plan = NodePlan(node)
        let format = MediaFormat.rawVideo(mode.name, width: mode.size.width, height: mode.size.height)
        PushQueue.plan(
            &plan, caps: mode.caps, mode.format.isH264 ? PushQueue.encodedLimits : .rawPictures, holding: format)
        // Exposing and reading out a frame take one frame period.
        plan.latency = 1 / (mode.rate ?? wish.rate).perSecond
        plan.elements[0].properties["min-latency"] = .integer(Int(plan.latency * 1e9))
        if wish.passes(mode) { return plan }
        try planRaw(&plan, mode, wish, environment)
        if wish.isEncoded {
            let format = MediaFormat(
                .encodedVideo, wish.delivered, width: wish.width, height: wish.height,
                framesPerSecond: wish.framesPerSecond)
            try plan.appendQueuedEncoder(of: format, environment)
        }
        return plan
    }

    /// Plans the camera's own encoding behind the frames.
    private static func planParser(
        _ plan: inout NodePlan, _ format: MediaFormat, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        guard let encoding = Encoding.named(format.encoding) else { return }
        try plan.appendParser(of: encoding, environment)
        // A stand-in of H.264 needs its bytes.
        plan.copiesPerFrame = format.encoding == "h264" ? 2 : 1
        plan.notes.append("the camera's encoded frames are passed through: not scaled, mirrored or encoded again")
    }

    private static func planRaw(
        _ plan: inout NodePlan, _ mode: CaptureMode, _ wish: CameraWish, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        if mode.format.isJPEG { plan.append("jpegdec", as: "decoder") }
        if mode.format.isH264, let encoding = Encoding.named("h264") {
            try plan.appendParser(of: encoding, prefix: "camera-", environment)
            let decoder = try environment.firstUsable(of: encoding.decoders).factory
            plan.append(decoder, as: "decoder", Encoding.decoderProperties(decoder))
        }
        let available = (mode.rate ?? CaptureMode.unknownRate).perSecond
        let rate = min(wish.framesPerSecond, available)
        if available > wish.framesPerSecond { plan.append("videorate", as: "rate", ["drop-only": true]) }
        if let crop = mode.crop(toShapeOf: wish.width, wish.height) {
            // Not every format of cameras can be cropped.
            plan.append("videoconvert", as: "convert")
            plan.append("videocrop", as: "crop", crop)
            plan.append("videoscale", as: "scale")
        } else {
            plan.append("videoscale", as: "scale")
            plan.append("videoconvert", as: "convert")
        }
        if wish.isMirrored { plan.append("videoflip", as: "mirror", ["video-direction": "horiz"]) }
        let format = MediaFormat.rawVideo(
            wish.isEncoded ? "I420" : wish.delivered, width: wish.width, height: wish.height, framesPerSecond: rate)
        plan.appendFilter(RawFormat.video(format), as: "format")
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        if let camera = instance.plan.resource.flatMap(LibCamera.init) { return KeptLibCamera(instance, camera) }
        return KeptCamera(instance)
    }

    // MARK: Errors

    static func silent(_ device: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraSilent,
            message:
                "The camera \(device) opened but delivered no frames: \(reason.trimmedSentence). Plug it in again, or "
                + "choose another size or camera.")
    }

    /// Whether a camera delivers, and every frame is damaged.
    static func isDamaged(_ counts: FrameCheck.Counts) -> Bool { counts.damagedLately > 1 }

    static func damaged(_ device: String, _ counts: FrameCheck.Counts) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraSilent,
            message:
                "The camera \(device) delivers damaged frames only: the last \(counts.damagedLately) were dropped. Check "
                + "its cable and hub, or choose MJPG or a smaller size.")
    }

    static func undecodable(_ device: String, _ frames: Int) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraUndecodable,
            message:
                "The camera \(device) sends frames that cannot be decoded: none of the last \(frames) was readable. "
                + "Choose another format or size, or plug the camera in again.")
    }

    static func lost(_ device: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraLost,
            message: "The camera \(device) stopped delivering frames. Check that it is plugged in.")
    }

    static func unresponsive(_ device: String) -> MediaError {
        silent(device, "its driver is not responding")
    }
}

/// A V4L2 camera in the best mode, converted to the requested size and rate, or with its own encoding.
public struct Camera: MediaNode {
    /// The output while the camera is away.
    public enum Away: String, SettingChoice {
        /// The last frame.
        case freeze
        /// A grey slate.
        case slate
        /// Nothing: the node ends with an error.
        case end
    }

    /// The format in which the camera delivers.
    public enum Format: String, SettingChoice {
        /// The one that needs the least work for all readers.
        case auto
        /// Raw only, without JPEG.
        case raw
        /// The camera's own encoding, passed through.
        case mjpeg, h264
    }

    public var handle: NodeHandle

    /// A camera. Nil values are the defaults, which `connectlive nodes camera` lists.
    ///
    /// - Parameters:
    ///   - device: a name of `connectlive devices`, a path such as `/dev/video0`, `fixture:FILE` for a recorded camera, or
    ///     `auto` for the first free one.
    ///   - isStrict: whether to refuse a camera without a mode of at least this size and rate, instead of scaling.
    ///   - failover: a camera that takes over while the other one is away; written like `device`.
    ///   - slateText: text of the slate, with the time in the format of strftime.
    ///   - slateImage: the path of a PNG or JPEG file that the slate shows.
    ///   - controls: other controls of the camera by their V4L2 names, such as `exposure_auto=1,focus_absolute=30`.
    public init(
        device: String? = nil, width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil,
        isStrict: Bool? = nil, mirror: Bool? = nil, format: Format? = nil, away: Away? = nil, failover: String? = nil,
        slateText: String? = nil, slateImage: String? = nil, brightness: Int? = nil, contrast: Int? = nil,
        saturation: Int? = nil, hue: Int? = nil, controls: String? = nil
    ) {
        handle = NodeHandle(
            CameraNode.kind,
            [
                "device": device, "width": width, "height": height, "fps": framesPerSecond, "strict": isStrict,
                "mirror": mirror, "format": format, "away": away, "failover": failover, "slate-text": slateText,
                "slate-image": slateImage, "brightness": brightness, "contrast": contrast, "saturation": saturation,
                "hue": hue, "controls": controls,
            ])
    }

    /// Changes a control of the camera, within the camera's own limits.
    ///
    /// - Throws: `camera.control` if the camera refuses; `node.not-running`.
    public func setBrightness(_ value: Int) async throws(MediaError) { try await change("brightness", to: value) }
    /// Changes the camera's contrast. Throws like `setBrightness`.
    public func setContrast(_ value: Int) async throws(MediaError) { try await change("contrast", to: value) }
    /// Changes the camera's saturation. Throws like `setBrightness`.
    public func setSaturation(_ value: Int) async throws(MediaError) { try await change("saturation", to: value) }
    /// Changes the camera's hue. Throws like `setBrightness`.
    public func setHue(_ value: Int) async throws(MediaError) { try await change("hue", to: value) }
    /// Changes controls by their V4L2 names, such as `exposure_auto=1,focus_absolute=30`.
    ///
    /// - Throws: like `setBrightness`.
    public func setControls(_ controls: String) async throws(MediaError) { try await change("controls", to: controls) }

    /// The frames that went wrong so far.
    ///
    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.Camera {
        get throws(MediaError) { try figures(\.cameras) ?? MediaStatistics.Camera() }
    }

    /// The state of the device. Nil before the node runs.
    ///
    /// - Throws: `node.not-running`.
    public var status: SourceStatus? { get throws(MediaError) { try figures(\.sources) } }
}

extension Node {
    /// A camera. `device` is a name of `connectlive devices`, a path such as `/dev/video0`, `fixture:FILE` for a recorded
    /// camera, or `auto` for the first free one. While it is away, the last frame stays (`away`: "freeze", "slate" or
    /// "end").
    package static func camera(
        _ name: String = "camera", device: String? = nil, width: Int? = nil, height: Int? = nil,
        framesPerSecond: Double? = nil, mirror: Bool? = nil, away: String? = nil
    ) -> Node {
        Node(
            CameraNode.kind, name,
            [
                "device": device, "width": width, "height": height, "fps": framesPerSecond, "mirror": mirror,
                "away": away,
            ])
    }
}

import Cameras
import GStreamerKit
public import MediaGraph

/// A V4L2 camera in the best mode, converted to the requested size and rate, or with its own encoding.
enum CameraNode: NodeType {
    private static let controlPattern = " *[A-Za-z0-9_]+ *= *[+-]?[A-Za-z0-9]+ *"
    /// The values of V4L2's controls. Each camera has its own limits within.
    private static let cameraControl = Int(Int32.min)...Int(Int32.max)

    static let kind = NodeKind(
        "camera", .capturer, "A V4L2 camera, raw or encoded by the camera",
        outputs: [Port("video", [.rawVideo, .encodedVideo], encodings: ["I420", "h264", "mjpeg"])],
        settings: [
            SettingContract(
                "device", .text, default: "auto",
                "A name of 'connectlive devices', such as serial:7C3F or front; a path such as /dev/video0, a name of "
                    + "/dev/v4l/by-id, fixture:FILE for a recorded camera, or auto for the first free one"
            ),
            SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width of the frames"),
            SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height of the frames"),
            SettingContract("fps", .number(1...240), default: 20, unit: "frames/s", "Frame rate"),
            SettingContract(
                "strict", .flag, default: false,
                "Whether to refuse a camera without a mode of at least this size and rate, instead of scaling"),
            SettingContract("mirror", .flag, default: false, "Whether to mirror raw frames"),
            SettingContract(
                "away", .choice(["freeze", "slate", "end"]), default: "freeze",
                "Output while the camera is away: the last frame, or a grey slate; end ends the node with an error, and "
                    + "so does the loss of a camera that passes through its encoding"),
            SettingContract(
                "failover", .text, "Camera that takes over while the other one is away; written like device"),
        ] + Slate.settings + [
            SettingContract(
                "format", .choice(["auto", "raw", "mjpeg", "h264"]), default: "auto",
                "mjpeg and h264 pass through the camera's encoding; raw avoids JPEG; auto chooses the best quality"
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
                "names and values, such as exposure_auto=1,focus_absolute=30"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let wish = CameraWish(request)
        return wish.isKeptUp ? try planHead(request, wish) : try planBound(request, wish, device(of: request))
    }

    /// The name of the device. An empty name comes from an unset variable.
    static func device(of settings: some NodeSettings) -> String {
        let device = settings.text("device")
        return device.isEmpty ? "auto" : device
    }

    /// Plans a head that gives the wished format, with the camera behind it if it is there.
    private static func planHead(_ request: NodeRequest, _ wish: CameraWish) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        let promise = MediaFormat.rawVideo(
            width: wish.width, height: wish.height, framesPerSecond: wish.framesPerSecond)
        SourceHead.plan(
            &plan, promise, caps: RawFormat.video(promise), latency: 1 / wish.framesPerSecond)
        plan.setOutput("video", promise)
        var device = DevicePlan(name: device(of: request), wish: wish.words)
        device.slate = try Slate.plan(request, promise)
        do throws(MediaError) {
            let bound = try planBound(request, wish, device.name)
            device.take(bound)
            (plan.resource, plan.latency) = (bound.resource, bound.latency)
            (plan.notes, plan.passedOver) = (bound.notes, bound.passedOver)
        } catch {
            // One that is optional is left out.
            guard Devices.isAway(error), !request.node.isOptional else { throw error }
            device.absence = error.message
            (plan.resource, plan.latency) = (device.name, 1 / wish.framesPerSecond)
            plan.notes = [device.waiting ?? ""]
        }
        plan.device = device
        return plan
    }

    /// Plans the elements of a camera that is there.
    static func planBound(
        _ request: NodeRequest, _ wish: CameraWish, _ device: String
    ) throws(MediaError) -> NodePlan {
        let choice = try request.environment.camera(device)
        let offers = request.environment.offers(of: choice.camera)
        let path = choice.camera.path
        let mode: CaptureMode
        do throws(CaptureError) {
            mode = try wish.capture.choose(from: offers, of: "\(path) (\(choice.camera.name))")
            let controls = try ControlValues(of: request)
            if !controls.values.isEmpty, let there = request.environment.cameraControls(path) {
                try controls.check(there.map(DeviceControl.init), of: path)
            }
        } catch {
            throw MediaError(error)
        }
        var plan = try planElements(request.node, mode, wish, request.environment)
        plan.resource = path
        plan.notes.insert(
            "\(path) (\(choice.camera.name)) in the mode \(mode.caps): \(mode.reason(for: wish))", at: 0)
        plan.passedOver = choice.passedOver + wish.passedOver(of: offers, for: mode)
        return plan
    }

    /// Plans the elements for the frames of a mode, which are pushed into `source`.
    static func planElements(
        _ node: Node, _ mode: CaptureMode, _ wish: CameraWish, _ environment: any PlanEnvironment
    ) throws(MediaError) -> NodePlan {
        var plan = NodePlan(node)
        let format = MediaFormat.rawVideo(mode.name, width: mode.size.width, height: mode.size.height)
        PushQueue.plan(
            &plan, caps: mode.caps, wish.format == .h264 ? PushQueue.encodedLimits : .rawPictures, holding: format)
        // Exposing and reading out a frame take one frame period.
        plan.latency = 1 / (mode.rate ?? wish.rate).perSecond
        plan.elements[0].properties["min-latency"] = .integer(Int(plan.latency * 1e9))
        if wish.isEncoded {
            try planEncoded(&plan, mode, environment)
        } else {
            planRaw(&plan, mode, wish)
        }
        return plan
    }

    /// Plans the camera's own encoding.
    private static func planEncoded(
        _ plan: inout NodePlan, _ mode: CaptureMode, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        guard let encoding = Encoding.named(mode.format.isJPEG ? "mjpeg" : "h264") else { return }
        try plan.appendParser(of: encoding, environment)
        plan.setOutput(
            "video",
            MediaFormat(
                .encodedVideo, encoding.name, width: mode.size.width, height: mode.size.height,
                framesPerSecond: (mode.rate ?? CaptureMode.unknownRate).perSecond))
        plan.copiesPerFrame = 1
        plan.notes.append("the camera's encoded frames are passed through: not scaled, mirrored or encoded again")
    }

    private static func planRaw(_ plan: inout NodePlan, _ mode: CaptureMode, _ wish: CameraWish) {
        if mode.format.isJPEG { plan.append("jpegdec", as: "decoder") }
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
        let format = MediaFormat.rawVideo(width: wish.width, height: wish.height, framesPerSecond: rate)
        plan.appendFilter(RawFormat.video(format), as: "format")
        plan.setOutput("video", format)
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        instance.plan.device == nil ? BoundCamera(instance) : KeptCamera(instance)
    }

    // MARK: Errors

    static func silent(_ device: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraSilent,
            message:
                "The camera \(device) opened but delivered no frames: \(reason.trimmedSentence). Plug it in again, or "
                + "choose another size or camera.")
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

extension Node {
    /// A camera. `device` is a name of `connectlive devices`, a path such as `/dev/video0`, `fixture:FILE` for a recorded
    /// camera, or `auto` for the first free one. While it is away, the last frame stays (`away`: "freeze", "slate" or
    /// "end").
    public static func camera(
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

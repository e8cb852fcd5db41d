import GStreamerKit
public import MediaGraph
import Synchronization

/// A V4L2 camera in the best mode, converted to the requested size and rate, or with its own encoding.
struct CameraNode: NodeType, RunningNode {
    /// An unplugged camera is detected within 2 s: this limit and the watchdog's interval.
    private static let silenceLimit = 1.5
    /// A camera that still responds may pause longer: some stop while they adjust, and a busy machine delays frames.
    private static let pauseLimit = 5.0

    private let device: String
    private let source: Element
    private let watchdog: Watchdog
    private let gaps: NumberGaps

    private static let controlPattern = " *[A-Za-z0-9_]+ *= *[+-]?[A-Za-z0-9]+ *"
    /// The values of V4L2's controls. Each camera has its own limits within.
    private static let cameraControl = Int(Int32.min)...Int(Int32.max)

    static let kind = NodeKind(
        "camera", .capturer, "A V4L2 camera, raw or encoded by the camera",
        outputs: [Port("video", [.rawVideo, .encodedVideo], encodings: ["I420", "h264", "mjpeg"])],
        settings: [
            SettingContract(
                "device", .text, default: "auto",
                "A name of 'connectlive devices', a path such as /dev/video0, a name of /dev/v4l/by-id, a USB port such "
                    + "as 1-1.2, or auto for the first free one"
            ),
            SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width of the frames"),
            SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height of the frames"),
            SettingContract("fps", .number(1...240), default: 20, unit: "frames/s", "Frame rate"),
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
        try request.environment.require("v4l2src")
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
        guard let mode = CameraMode.best(of: choice.camera.formats, wish) else {
            throw noMode(choice.camera, wish)
        }
        var plan = NodePlan(request.node)
        let path = choice.camera.path
        plan.resource = path
        let controls = try CameraControls(request)
        if !controls.values.isEmpty, let there = request.environment.cameraControls(path) {
            try controls.check(there, of: path)
        }
        plan.add("v4l2src", as: "source", ["device": .text(path)])
        plan.elements[0].properties["extra-controls"] = controls.structure
        plan.appendFilter(mode.caps, as: "mode")
        if mode.isUntouched {
            try planEncoded(&plan, mode, request.environment)
        } else {
            planRaw(&plan, mode, wish, isMirrored: request.flag("mirror"))
        }
        // Exposing and reading out a frame take one frame period.
        plan.latency = 1 / mode.framesPerSecond
        plan.notes.append(
            "\(path) (\(choice.camera.name)) in the mode \(mode.caps): \(mode.reason(for: wish))")
        plan.passedOver = choice.passedOver + CameraMode.passedOver(of: choice.camera.formats, for: mode, wish)
        return plan
    }

    /// Plans the camera's own encoding.
    private static func planEncoded(
        _ plan: inout NodePlan, _ mode: CameraMode, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        guard let encoding = Encoding.named(mode.isJPEG ? "mjpeg" : "h264") else { return }
        try plan.appendParser(of: encoding, environment)
        plan.setOutput(
            "video",
            MediaFormat(
                .encodedVideo, encoding.name, width: mode.width, height: mode.height,
                framesPerSecond: mode.framesPerSecond))
        plan.notes.append("the camera's encoded frames are passed through: not scaled, mirrored or encoded again")
    }

    private static func planRaw(_ plan: inout NodePlan, _ mode: CameraMode, _ wish: CameraWish, isMirrored: Bool) {
        if mode.isJPEG { plan.append("jpegdec", as: "decoder") }
        let rate = min(wish.framesPerSecond, mode.framesPerSecond)
        if mode.framesPerSecond > wish.framesPerSecond { plan.append("videorate", as: "rate", ["drop-only": true]) }
        if let crop = mode.crop(toShapeOf: wish.width, wish.height) {
            // Not every format of cameras can be cropped.
            plan.append("videoconvert", as: "convert")
            plan.append("videocrop", as: "crop", crop)
            plan.append("videoscale", as: "scale")
        } else {
            plan.append("videoscale", as: "scale")
            plan.append("videoconvert", as: "convert")
        }
        if isMirrored { plan.append("videoflip", as: "mirror", ["video-direction": "horiz"]) }
        let format = MediaFormat.rawVideo(width: wish.width, height: wish.height, framesPerSecond: rate)
        plan.appendFilter(RawFormat.video(format), as: "format")
        plan.setOutput("video", format)
    }

    private static func noMode(_ camera: CameraDevice, _ wish: CameraWish) -> MediaError {
        let there = Set(camera.formats.map(\.pixelFormat)).sorted().joined(separator: ", ")
        let what =
            wish.format == .auto ? "no readable format" : "no format \(wish.format.rawValue)"
        return MediaError(
            code: MediaError.Code.cameraNoMode,
            message:
                "The camera \(camera.path) (\(camera.name)) offers \(what), only \(there). Choose another camera or "
                + "format.")
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        let controls = try CameraControls(value.text ?? "\(setting)=\(value.integer ?? 0)")
        if let there = DeviceProbe.controls(of: device) { try controls.check(there, of: device) }
        // Sets only the given controls; the others keep their values.
        if let structure = controls.structure { try source.set("extra-controls", structure) }
        return true
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        if instance.plan.device != nil { return KeptCamera(instance) }
        guard let device = instance.plan.element("source")?.properties["device"]?.text else { return nil }
        let watchdog = Watchdog(
            instance, limit: silenceLimit, timeout: pauseLimit,
            isThere: { DeviceProbe.openingProblem(of: device) == nil }, lost: lost(device))
        let gaps = NumberGaps()
        instance.element("source").source.watchBuffers { picture in
            watchdog.feed()
            if let number = picture.number { gaps.saw(number) }
        }
        return CameraNode(
            device: device, source: instance.element("source"), watchdog: watchdog, gaps: gaps)
    }

    func finish() {
        watchdog.stop()
        LeftoverDescriptors.mark(of: source)
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.cameras[name] = .init()
        statistics.cameras[name]?.lost = gaps.missing
    }

    func stopped() {
        watchdog.stop()
        LeftoverDescriptors.release(of: source)
    }

    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? {
        Self.explain(failure, of: device, isFed: watchdog.isFed)
    }

    /// The error for a failure of the elements of a camera.
    static func explain(_ failure: PipelineFailure, of device: String, isFed: Bool) -> MediaError? {
        switch failure.kind {
        case .busy: busy(device)
        case .notFound: Devices.absent(device)
        case .cannotOpen where Devices.exists(device): busy(device)
        case .cannotOpen: Devices.absent(device)
        case _ where !Devices.exists(device): lost(device)
        // The conversion to I420 failed, not the device.
        case _ where failure.path.first?.hasSuffix(".source") != true: nil
        default: isFed ? lost(device) : silent(device, failure.message)
        }
    }

    var stalled: MediaError? { Self.silent(device, "none arrived within \(Limits().start.short) s") }

    static func silent(_ device: String, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraSilent,
            message:
                "The camera \(device) opened but delivered no frames: \(reason.trimmedSentence). Plug it in again, or "
                + "choose another size or camera.")
    }

    private static func busy(_ device: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraBusy,
            message: "The camera \(device) cannot be opened: another program uses it, or you lack permission. Close "
                + "the other program, or join the group video.")
    }

    static func lost(_ device: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraLost,
            message: "The camera \(device) stopped delivering frames. Check that it is plugged in.")
    }
}

/// Counts gaps in sequence numbers. A camera numbers all frames, including those that it could not deliver.
final class NumberGaps: Sendable {
    private let state = Mutex((last: UInt64?.none, missing: 0))

    /// A number that does not increase means that the device restarted its count.
    func saw(_ number: UInt64) {
        state.withLock { state in
            if let last = state.last, number > last { state.missing += Int(clamping: number - last - 1) }
            state.last = number
        }
    }

    var missing: Int { state.withLock { $0.missing } }
}

extension Node {
    /// A camera. `device` is a path such as `/dev/video0`, or `auto` for the first free camera. While it is away, the
    /// last frame stays (`away`: "freeze", "slate" or "end").
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

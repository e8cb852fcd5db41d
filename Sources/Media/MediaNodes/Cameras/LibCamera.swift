import Cameras
import GStreamerKit
import MediaGraph

/// A camera of libcamera, such as a Raspberry Pi's: V4L2 has only raw Bayer frames of its sensor, and libcamera makes usable
/// frames of them. GStreamer's `libcamerasrc` captures it.
struct LibCamera: Equatable {
    static let factory = "libcamerasrc"
    static let prefix = "libcamera"

    /// libcamera's name of the camera. Nil for the first one.
    let identifier: String?

    /// The camera that `device` of a node names: `libcamera` or `libcamera:NAME`. Nil for another kind of camera.
    init?(_ device: String) {
        guard device.hasPrefix(Self.prefix) else { return nil }
        let rest = device.dropFirst(Self.prefix.count)
        guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
        identifier = rest.count > 1 ? String(rest.dropFirst()) : nil
    }

    var name: String { Self.prefix + (identifier.map { ":\($0)" } ?? "") }

    /// Plans the first camera of libcamera if `auto` finds no usable camera of V4L2. Nil if there is none either, and if
    /// the settings are for V4L2.
    static func plan(insteadOf error: MediaError, _ request: NodeRequest, _ wish: CameraWish) -> NodePlan? {
        guard replaces(CameraNode.device(of: request), after: error, request.environment) else { return nil }
        return try? LibCamera(prefix)?.plan(request, wish)
    }

    /// Whether the first camera of libcamera takes the place of the one that a node names, which was not found.
    static func replaces(_ device: String, after error: MediaError, _ environment: any PlanEnvironment) -> Bool {
        device == CameraSystem.any && CameraSystem.automatic == nil
            && [MediaError.Code.cameraAbsent, MediaError.Code.cameraNoMode].contains(error.code)
            && environment.hasElement(factory) && environment.canOpen(factory)
    }

    /// Throws `element.missing` without GStreamer's plugin for libcamera.
    func checkPlugin(_ environment: any PlanEnvironment) throws(MediaError) {
        guard !environment.hasElement(Self.factory) else { return }
        throw MediaError(
            code: MediaError.Code.elementMissing,
            message:
                "The camera \(name) cannot be opened: GStreamer's plugin for libcamera is not installed. On Debian, "
                + "install \(environment.package(ofElement: Self.factory)).")
    }

    /// Plans a head with the camera behind it. Whether it is there turns out when it is opened.
    func plan(_ request: NodeRequest, _ wish: CameraWish) throws(MediaError) -> NodePlan {
        try checkPlugin(request.environment)
        try check(request, wish)
        let choice = request.choice(
            "video",
            among: ["NV12", "I420"].map { format in
                FormatAlternative(
                    "\(format) of libcamera",
                    .rawVideo(format, width: wish.width, height: wish.height, framesPerSecond: wish.framesPerSecond),
                    work: Work(conversions: format == Self.native ? 0 : 1))
            })
        var device = DevicePlan(name: name, wish: wish.words)
        device.take(planElements(request.node, wish.delivering(choice.format.encoding)))
        if wish.isKeptUp { device.slate = try Slate.plan(request, choice.format) }
        var plan = NodePlan(request.node)
        plan.latency = 1 / wish.framesPerSecond
        SourceHead.plan(&plan, choice.format, caps: choice.format.pushedCaps, latency: plan.latency)
        plan.setOutput("video", choice.format)
        plan.resource = name
        plan.notes.append("\(name) through \(Self.factory), in \(wish.words) frames/s")
        plan.note(choice)
        plan.device = device
        return plan
    }

    /// The format that the image processors of boards write.
    private static let native = "NV12"

    fileprivate func planElements(_ node: Node, _ wish: CameraWish) -> NodePlan {
        var plan = NodePlan(node)
        plan.append(Self.factory, as: "source", identifier.map { ["camera-name": .text($0)] } ?? [:])
        plan.appendFilter(RawFormat.video(.rawVideo(Self.native, width: wish.width, height: wish.height)), as: "size")
        plan.append("videorate", as: "rate", ["drop-only": true])
        if wish.delivered != Self.native { plan.append("videoconvert", as: "convert") }
        if wish.isMirrored { plan.append("videoflip", as: "mirror", ["video-direction": "horiz"]) }
        plan.appendFilter(
            RawFormat.video(.rawVideo(wish.delivered, width: wish.width, height: wish.height)), as: "format")
        return plan
    }

    /// Refuses settings of V4L2 cameras.
    private func check(_ request: NodeRequest, _ wish: CameraWish) throws(MediaError) {
        if wish.format == .h264 || wish.format == .mjpeg {
            throw MediaError(
                code: MediaError.Code.cameraNoMode,
                message:
                    "\(name) has no \(wish.format.rawValue): cameras of libcamera deliver raw frames. Leave format out."
            )
        }
        let controls = (ControlValues.names + ["controls"]).filter(request.isGiven)
        if let control = controls.first { throw noControl(control) }
        let unused = ["failover", "strict"].filter(request.isGiven)
        if let setting = unused.first {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "\(setting) is not available for \(name), only for cameras of V4L2. Leave it out.")
        }
    }

    fileprivate func noControl(_ name: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraControl,
            message:
                "\(self.name) has no control \(name): controls are available for cameras of V4L2 only. Leave it out.")
    }
}

/// A node of libcamera that goes on while its camera is away.
struct KeptLibCamera: HeadedNode {
    private let camera: LibCamera
    let head: SourceHead?

    init(_ instance: NodeInstance, _ camera: LibCamera) {
        self.camera = camera
        let wish = CameraWish(of: instance).delivering(instance.plan.formats["video"]?.encoding ?? "I420")
        head = SourceHead(
            instance,
            LibCameraDevice(
                camera.name, camera.planElements(instance.node, wish), wish.framesPerSecond, instance),
            [.video(of: instance)],
            withoutDevice: wish.isKeptUp ? .goesOn : .ends,
            limits: SourceSupervisor.Limits().paced(wish.framesPerSecond))
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool { throw camera.noControl(setting) }

    func check(_ setting: String, to value: SettingValue) throws(MediaError) { throw camera.noControl(setting) }
}

/// The elements of a camera, made when it is opened.
final class LibCameraDevice: SourceDevice {
    private let name: String
    private let plan: DevicePlan
    private let framesPerSecond: Double
    private let prefix: String
    private let clock: PipelineClock
    private let opened = OpenChain()

    init(_ name: String, _ elements: NodePlan, _ framesPerSecond: Double, _ instance: NodeInstance) {
        (self.name, self.framesPerSecond) = (name, framesPerSecond)
        (prefix, clock) = (instance.prefix, instance.pipeline.clock)
        var plan = DevicePlan(name: name, wish: "")
        plan.take(elements)
        self.plan = plan
    }

    func name(of candidate: Int) -> String { name }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        let chain = try DeviceChain(plan, named: prefix, on: clock, for: output) { [name] failure, isFed in
            isFed ? CameraNode.lost(name) : Self.absent(name, failure)
        }
        chain.element("rate").dropFrames(above: framesPerSecond)
        opened.hold(chain)
        try chain.play()
    }

    func close() { opened.close() }

    /// libcamera tells only a process that does not capture.
    func isThere(_ candidate: Int) -> Bool { false }

    func isAbsence(_ error: MediaError) -> Bool { error.code == MediaError.Code.cameraAbsent }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        cause == .unresponsive ? CameraNode.unresponsive(name) : CameraNode.lost(name)
    }

    private static func absent(_ name: String, _ failure: PipelineFailure) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraAbsent,
            message:
                "libcamera cannot open the camera \(name): \(failure.message.trimmedSentence). Check the ribbon cable, "
                + "and that no other program uses the camera.", cause: failure.detail)
    }
}

/// The machine as the planner sees it: what is installed, plugged in and readable. Tests make up their own.
///
/// All of it may block for some tens of milliseconds.
public protocol PlanEnvironment: Sendable {
    /// Whether a GStreamer element is installed.
    func hasElement(_ factory: String) -> Bool
    /// Whether an element can really be used: the driver of an installed hardware encoder may be missing.
    func canOpen(_ factory: String) -> Bool
    /// The Debian package that brings an element.
    func package(ofElement factory: String) -> String
    /// The camera that a camera node's `device` names. Throws `camera.absent` or `camera.busy`.
    func camera(_ device: String) throws(MediaError) -> CameraDevice
    /// What a file holds. Throws `file.not-found`, `file.unreadable` and their kin.
    func file(_ path: String) throws(MediaError) -> MediaFileInfo
    /// Why nothing can be written to a path, without trying; nil when it looks as if it could.
    func obstacle(toWriting path: String) -> String?
    /// The same text for two paths that lead to one file, whether it exists or not; nil for a path that several nodes may
    /// write to, such as a device.
    func fileIdentity(_ path: String) -> String?
    /// The element that shows pictures on the display that there is; nil where there is none.
    func windowSink() -> String?
    /// The element that plays on the first sound system that answers; nil where none does.
    func soundSink() -> String?
    /// The element that records from the first sound system that answers; nil where none does.
    func soundSource() -> String?
    /// Whether a microphone can be read through a sound system; nil names its default. Throws `microphone.absent`.
    func checkMicrophone(_ device: String?, of system: SoundSystem) throws(MediaError)
    /// The camera that a camera node's `device` names, and which were passed over. Throws as `camera` does.
    func cameraChoice(_ device: String) throws(MediaError) -> CameraChoice
    /// The controls of a camera, by its path; nil where they cannot be asked for, and then any may be.
    func cameraControls(_ path: String) -> [CameraControl]?
    /// The streams that the network camera at an address offers. Throws `rtsp.unreachable` and its kin.
    func networkCamera(_ url: String, verifyingCertificate: Bool) throws(MediaError) -> NetworkCamera
    /// A display of X11, or the window on it that is named; an empty name means the environment's display, or all of it.
    /// Throws `screen.unavailable` or `screen.no-window`.
    func screen(display: String, window: String) throws(MediaError) -> CapturedScreen
    /// A node of PipeWire that gives pictures, by its number or name. Throws `screen.unavailable`.
    func pipeWireScreen(_ node: String) throws(MediaError) -> CapturedScreen
    /// The path of a program that can be run, by a name as a shell takes it; nil where there is none.
    func program(_ name: String) -> String?
    /// Seconds that an element is expected to take for one frame of this format.
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double
}

/// What a made-up machine has of what most tests do not ask for.
extension PlanEnvironment {
    public func checkMicrophone(_ device: String?, of system: SoundSystem) throws(MediaError) {}

    public func program(_ name: String) -> String? { name }

    public func fileIdentity(_ path: String) -> String? { FileConflict.normalized(path) }

    public func cameraChoice(_ device: String) throws(MediaError) -> CameraChoice {
        CameraChoice(try camera(device))
    }

    public func cameraControls(_ path: String) -> [CameraControl]? { nil }

    public func networkCamera(_ url: String, verifyingCertificate: Bool) throws(MediaError) -> NetworkCamera {
        throw MediaError(code: MediaError.Code.rtspUnreachable, message: "No network camera responds at this address.")
    }

    public func screen(display: String, window: String) throws(MediaError) -> CapturedScreen {
        throw MediaError(code: MediaError.Code.screenUnavailable, message: "The display \(display) does not exist.")
    }

    public func pipeWireScreen(_ node: String) throws(MediaError) -> CapturedScreen {
        throw MediaError(code: MediaError.Code.screenUnavailable, message: "PipeWire has no node \(node).")
    }
}

extension PlanEnvironment {
    public func obstacle(toWriting path: String) -> String? { nil }

    /// The first of several elements that is there and can be used, with what was passed over before it.
    ///
    /// Throws `element.missing` naming the package of the last one, which should be the one that everybody can have.
    public func firstUsable(
        of factories: [String]
    ) throws(MediaError) -> (factory: String, passedOver: [String]) {
        var passedOver: [String] = []
        for factory in factories {
            if !hasElement(factory) {
                passedOver.append("\(factory) is not installed")
            } else if !canOpen(factory) {
                passedOver.append("\(factory) is installed but cannot be opened: no hardware or driver")
            } else {
                return (factory, passedOver)
            }
        }
        throw .missingElement(factories.last ?? "", package: package(ofElement: factories.last ?? ""))
    }

    /// Throws `element.missing` when an element is not installed.
    public func require(_ factory: String) throws(MediaError) {
        if !hasElement(factory) { throw .missingElement(factory, package: package(ofElement: factory)) }
    }
}

extension MediaError {
    /// `element.missing`, naming the Debian package that has it.
    public static func missingElement(_ factory: String, package: String) -> MediaError {
        MediaError(
            code: Code.elementMissing,
            message: "The GStreamer element \(factory) is not installed. On Debian, install \(package).")
    }
}

/// The planner's view of the machine: installed elements, devices, files. Tests provide their own.
///
/// Methods may block: most for tens of milliseconds, those that open a file, a network camera or PipeWire for up to 5
/// s.
public protocol PlanEnvironment: Sendable {
    /// Whether a GStreamer element is installed.
    func hasElement(_ factory: String) -> Bool
    /// Whether an element can be opened. An installed hardware encoder may lack its driver.
    func canOpen(_ factory: String) -> Bool
    /// The Debian package with an element.
    func package(ofElement factory: String) -> String
    /// One sentence for an element that is not installed, with its package. By default, to install that.
    func reasonForLack(ofElement factory: String) -> String
    /// The camera that `device` of a camera node names, and the rejected ones. Throws `camera.absent` or `camera.busy`.
    func camera(_ device: String) throws(MediaError) -> CameraChoice
    /// The streams of a media file. Throws `file.not-found`, `file.unreadable` and other `file.` errors.
    func file(_ path: String) throws(MediaError) -> MediaFileInfo
    /// The reason why a file cannot be read, found without reading it; nil if there seems to be none.
    func obstacle(toReading path: String) -> String?
    /// The reason why a file is not a PNG or JPEG image, found by its first bytes; nil if it seems to be one.
    func obstacle(toShowing path: String) -> String?
    /// The reason why a path cannot be written, found without writing; nil if there seems to be none.
    func obstacle(toWriting path: String) -> String?
    /// A text that is equal for all paths to the same file, which need not exist. Nil for a path that several nodes may
    /// write to, such as a device.
    func fileIdentity(_ path: String) -> String?
    /// The element that shows video on the available display; nil without a display.
    func windowSink() -> String?
    /// The element that plays on the first sound system that responds; nil if none does.
    func soundSink() -> String?
    /// The element that records from the first sound system that responds; nil if none does.
    func soundSource() -> String?
    /// The devices of a sound system, or of the first one that has any. Nil if it does not respond or cannot list them.
    func soundDevices(of system: SoundSystem?) -> SoundDevices?
    /// Checks that a microphone can be opened through a sound system. A nil device means the default. Throws
    /// `microphone.absent`.
    func checkMicrophone(_ device: String?, of system: SoundSystem) throws(MediaError)
    /// The streams of the network camera at a URL. Throws `rtsp.unreachable` and other `rtsp.` errors.
    func networkCamera(_ url: String, verifyingCertificate: Bool) throws(MediaError) -> NetworkCamera
    /// An X11 display, or a window on it. An empty display means that of the environment; an empty window means the
    /// whole display. Throws `screen.unavailable` or `screen.no-window`.
    func screen(display: String, window: String) throws(MediaError) -> CapturedScreen
    /// A video node of PipeWire, by its number or name. Throws `screen.unavailable`.
    func pipeWireScreen(_ node: String, descriptor: Int?) throws(MediaError) -> CapturedScreen
    /// The path of an executable, found as a shell finds it; nil if there is none.
    func program(_ name: String) -> String?
    /// The expected seconds that an element needs for one frame of this format.
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double
}

/// Defaults for test environments.
extension PlanEnvironment {
    public func soundDevices(of system: SoundSystem?) -> SoundDevices? { nil }

    public func checkMicrophone(_ device: String?, of system: SoundSystem) throws(MediaError) {}

    public func program(_ name: String) -> String? { name }

    public func fileIdentity(_ path: String) -> String? { path.normalizedPath }

    public func networkCamera(_ url: String, verifyingCertificate: Bool) throws(MediaError) -> NetworkCamera {
        throw MediaError(code: MediaError.Code.rtspUnreachable, message: "No network camera responds at this address.")
    }

    public func screen(display: String, window: String) throws(MediaError) -> CapturedScreen {
        throw MediaError(code: MediaError.Code.screenUnavailable, message: "The display \(display) does not exist.")
    }

    public func pipeWireScreen(_ node: String, descriptor: Int?) throws(MediaError) -> CapturedScreen {
        throw MediaError(code: MediaError.Code.screenUnavailable, message: "PipeWire has no node \(node).")
    }
}

extension PlanEnvironment {
    public func obstacle(toReading path: String) -> String? { nil }

    public func obstacle(toShowing path: String) -> String? { obstacle(toReading: path) }

    public func obstacle(toWriting path: String) -> String? { nil }

    public func reasonForLack(ofElement factory: String) -> String {
        "The GStreamer element \(factory) is not installed. On Debian, install \(package(ofElement: factory))."
    }

    /// Returns the first of several elements that can be used, and the reasons for rejecting the ones before it.
    ///
    /// - Throws: `element.missing` with the package of the last element, which should be one that every machine can
    ///   install.
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
        throw missingElement(factories.last ?? "")
    }

    /// Throws `element.missing` if an element is not installed.
    public func require(_ factory: String) throws(MediaError) {
        if !hasElement(factory) { throw missingElement(factory) }
    }

    /// `element.missing`, with the Debian package to install.
    public func missingElement(_ factory: String) -> MediaError {
        MediaError(code: MediaError.Code.elementMissing, message: reasonForLack(ofElement: factory))
    }
}

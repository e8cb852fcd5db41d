internal import ChildProcesses
internal import GStreamerKit
public import MediaGraph

/// This machine, as it is now.
public struct SystemEnvironment: PlanEnvironment {
    let doesMeasure: Bool
    /// Whether a plan may capture from a camera for a moment. A plan without that expects that its H.264 can pass.
    package var mayCapture = true
    /// Whether a recent answer counts that there is no sound system, as for a device that asks again and again.
    var retriesSound = false

    /// With `measuringCosts`, for a plan that is only shown: codecs run for a plan's expected latency, which takes half a
    /// second for each, files are decoded for a moment, and no camera is asked whether another program reads it, because
    /// asking keeps other programs from it for that moment. A plan that is to run leaves the first two to the run.
    public init(measuringCosts: Bool = false) {
        doesMeasure = measuringCosts
    }

    public func hasElement(_ factory: String) -> Bool { GStreamer.has(factory) }

    public func canOpen(_ factory: String) -> Bool {
        if AudioSystem.has(factory) {
            return sound(factory) { AudioSystem.opens(factory) == true ? true : nil } != nil
        }
        guard let element = try? Element(factory) else { return false }
        return element.canOpen()
    }

    public func package(ofElement factory: String) -> String { GStreamer.debianPackage(of: factory) }

    public func reasonForLack(ofElement factory: String) -> String { ElementFactory.reasonForLack(of: factory) }

    public func file(_ path: String) throws(MediaError) -> MediaFileInfo {
        try MediaFile.contents(of: path, trustingHeads: !doesMeasure)
    }

    public func obstacle(toReading path: String) -> String? { FileAccess.obstacleToReading(path) }

    public func obstacle(toShowing path: String) -> String? { FileAccess.obstacleToShowing(path) }

    public func obstacle(toWriting path: String) -> String? { FileAccess.expectedObstacle(path) }

    public func fileIdentity(_ path: String) -> String? { FileAccess.identity(path) }

    public func windowSink() -> String? {
        guard let sink = DisplaySystem.openWindowSink() else { return nil }
        defer { sink.close() }
        return sink.factory
    }

    public func soundSink() -> String? { sound("playing") { AudioSystem.playing } }

    private func sound<Answer>(_ question: String, _ ask: () -> Answer?) -> Answer? {
        retriesSound ? SoundRetries.shared.answer(question, ask) : ask()
    }

    public func soundSource() -> String? { sound("recording") { AudioSystem.recording } }

    /// How long to wait for a network camera's answer, in seconds.
    private static let networkCameraTimeout = 4.0

    public func networkCamera(_ url: String, verifyingCertificate: Bool) throws(MediaError) -> NetworkCamera {
        guard let address = RTSPAddress(url) else { throw RTSPFailure.badAddress }
        do throws(RTSPProbe.Failure) {
            return try RTSPProbe.describe(
                address, verifyingCertificate: verifyingCertificate, seconds: Self.networkCameraTimeout)
        } catch {
            throw RTSPFailure.described(error, at: address)
        }
    }

    public func screen(display: String, window: String) throws(MediaError) -> CapturedScreen {
        try ScreenSearch.find(display: display, window: window)
    }

    public func pipeWireScreen(_ node: String, descriptor: Int?) throws(MediaError) -> CapturedScreen {
        try ScreenSearch.findPipeWire(node, descriptor)
    }

    public func soundDevices(of system: SoundSystem?) -> SoundDevices? {
        sound("devices of \(system?.rawValue ?? "any")") { SoundSearch.devices(of: system) }
    }

    public func checkMicrophone(_ device: String?, of system: SoundSystem) throws(MediaError) {
        // A source that cannot reach its server leaves a thread behind; see `AudioSystem.opens`.
        guard system == .alsa || canOpen("\(system)src") else { throw MicrophoneNode.absent(device ?? SoundName.any) }
        try MicrophoneNode.check(device, of: system)
    }

    public func program(_ name: String) -> String? { ProgramSearch.find(name) }

    public func camera(_ device: String) throws(MediaError) -> CameraChoice { try camera(device) { _, _ in } }

    public func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double {
        doesMeasure ? ElementCost.measured(element, format) : 0
    }
}

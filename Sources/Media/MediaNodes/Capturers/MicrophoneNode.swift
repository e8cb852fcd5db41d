import GStreamerKit
import MediaGraph

/// A microphone of PulseAudio (or PipeWire in its place) or ALSA.
final class MicrophoneNode: NodeType, RunningNode {
    private static let silenceLimit = 1.5

    let name: String
    private let device: String
    private let watchdog: Watchdog

    private init(_ name: String, device: String, watchdog: Watchdog) {
        self.name = name
        self.device = device
        self.watchdog = watchdog
    }

    static let kind = NodeKind.microphone

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let device = request.text("device")
        // ALSA's names say so; everything else is PulseAudio's.
        let isALSA = ["hw:", "plughw:", "default:", "sysdefault:"].contains { device.hasPrefix($0) }
        guard let factory = device == "auto" ? request.environment.soundSource() : isALSA ? "alsasrc" : "pulsesrc"
        else {
            throw absent(device)
        }
        var properties: [String: SettingValue] = [
            "buffer-time": 60_000, "latency-time": 10_000, "provide-clock": false,
        ]
        if device != "auto" { properties["device"] = .text(device) }
        var plan = NodePlan(request.node)
        plan.add(factory, as: "source", properties)
        plan.add("audioconvert", as: "convert")
        plan.add("audioresample", as: "resample")
        plan.addFilter(RawFormat.audio, as: "format")
        plan.link("source", "convert", "resample", "format")
        plan.outputs["audio"] = ElementPad("format")
        plan.formats["audio"] = .rawAudio
        plan.latency = 0.01
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let device = instance.setting("device")?.text ?? "auto"
        let reporter = instance.reporter
        let name = instance.name
        let watchdog = Watchdog(limit: silenceLimit, control: instance.control) {
            reporter.fail(lost(device), name)
        }
        instance.element("source").source.onBuffer { _ in
            watchdog.feed()
            reporter.isReady(name)
            return .pass
        }
        reporter.await(name)
        return MicrophoneNode(name, device: device, watchdog: watchdog)
    }

    func finish() {
        watchdog.stop()
    }

    func stopped() {
        watchdog.stop()
    }

    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? {
        switch failure.kind {
        case .busy:
            MediaError(
                code: MediaError.Code.microphoneBusy,
                message: "The microphone \(device) is in use by another program; close that program.")
        case .notFound, .cannotOpen: Self.absent(device)
        default: watchdog.isFed ? Self.lost(device) : Self.absent(device)
        }
    }

    private static func absent(_ device: String) -> MediaError {
        // The default one of ALSA does not say whether it is missing or taken.
        let what =
            device == "auto"
            ? "No microphone was found that can be opened; plug one in, close the program that uses it"
            : "There is no microphone \(device); plug one in"
        return MediaError(
            code: MediaError.Code.microphoneAbsent, message: "\(what), start the sound server, or go without.")
    }

    private static func lost(_ device: String) -> MediaError {
        let what = device == "auto" ? "The microphone" : "The microphone \(device)"
        return MediaError(
            code: MediaError.Code.microphoneLost,
            message: "\(what) gives no more sound; check that it is still plugged in.")
    }
}

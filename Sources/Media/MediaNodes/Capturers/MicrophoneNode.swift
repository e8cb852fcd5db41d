import GStreamerKit
import MediaGraph

/// A microphone of PulseAudio (or PipeWire in its place) or ALSA.
final class MicrophoneNode: RunningNode {
    private static let silenceLimit = 1.5

    let name: String
    private let device: String
    private let watchdog: Watchdog

    private init(_ name: String, device: String, watchdog: Watchdog) {
        self.name = name
        self.device = device
        self.watchdog = watchdog
    }

    static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        let device = node.text("device")
        // ALSA's names say so; everything else is PulseAudio's.
        let isALSA = ["hw:", "plughw:", "default:", "sysdefault:"].contains { device.hasPrefix($0) }
        guard let factory = device == "auto" ? AudioSystem.recording : isALSA ? "alsasrc" : "pulsesrc" else {
            throw absent(device)
        }
        let source = try assembly.element(
            factory, of: node, ["buffer-time": 60_000, "latency-time": 10_000, "provide-clock": false])
        if device != "auto" { source.set("device", .text(device)) }
        let convert = try assembly.element("audioconvert", of: node)
        let resample = try assembly.element("audioresample", of: node)
        let filter = try assembly.filter(Assembly.rawAudio, of: node)
        try assembly.link(source, convert, resample, filter)
        let reporter = assembly.reporter
        let name = node.name
        let watchdog = Watchdog(limit: silenceLimit, control: assembly.control) {
            reporter.fail(lost(device))
        }
        source.source.onBuffer { _ in
            watchdog.feed()
            reporter.isReady(name)
            return .pass
        }
        reporter.await(name)
        assembly.provide("audio", of: node, from: filter)
        assembly.register(MicrophoneNode(name, device: device, watchdog: watchdog))
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

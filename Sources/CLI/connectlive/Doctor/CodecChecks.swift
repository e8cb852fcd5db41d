internal import Cameras
internal import Foundation
import MediaGraph
internal import MediaNodes

extension Machine {
    /// GStreamer with its elements, and the speed of encoders and decoders.
    var codecChecks: [Check] {
        [
            // After an installation, GStreamer reads all plugins.
            .blocking(
                "GStreamer", .first, limit: .seconds(30),
                fixIfSilent: "A plugin hangs while it is loaded: rm -r ~/.cache/gstreamer-1.0, then try again."
            ) { [.ok("version \(gstreamer())")] },
            .blocking("plugins", fixIfSilent: Self.driverFix, run: pluginFindings),
            .blocking("hardware encoders", fixIfSilent: Self.driverFix, run: hardwareFindings),
        ]
            + encoders.map { encoder in
                .blocking("encoder", .alone, limit: .seconds(5), fixIfSilent: Self.driverFix) {
                    encoderFindings(encoder)
                }
            }
            + Self.decodedCodecs.map { codec in
                .blocking("decoder", .alone, limit: .seconds(5), fixIfSilent: Self.driverFix) {
                    decoderFindings(codec)
                }
            }
    }

    private static let driverFix = "A driver hangs: restart the machine, or remove the driver's GStreamer plugin."
    private static let size = FrameSize(1280, 720)
    private static let leastRate = 30.0
    /// The codecs of rooms.
    private static let decodedCodecs = ["vp8", "vp9", "h264"]

    /// The elements that every call needs.
    static let neededElements = [
        "appsrc", "appsink", "videoconvert", "videoscale", "videorate", "audioconvert", "audioresample", "opusenc",
        "opusdec", "vp8enc", "vp8dec", "h264parse",
    ]
    /// The elements that some calls and graphs need, with their use.
    static let usefulElements: [(use: String, elements: [String])] = [
        ("H.264", ["x264enc", "avdec_h264"]), ("VP9", ["vp9enc", "vp9dec"]),
        ("JPEG of cameras", ["jpegparse", "jpegdec"]),
        ("files", ["decodebin", "uridecodebin", "qtdemux", "matroskademux"]),
        ("the test pattern", ["videotestsrc", "audiotestsrc"]), ("mixers", ["compositor", "audiomixer"]),
        ("recordings", ["mp4mux", "matroskamux", "vp9enc", "av1enc", "voaacenc"]),
        ("sound", ["pulsesrc", "pulsesink", "alsasrc", "alsasink", "level"]), ("echo cancelling", ["webrtcdsp"]),
        ("windows and screens", ["ximagesink", "ximagesrc"]),
    ]

    private func pluginFindings() -> [Finding] {
        let needed = Self.neededElements.filter { !elements.hasElement($0) }
        var findings: [Finding] = []
        if !needed.isEmpty {
            findings.append(
                .failure("Every call needs \(needed.joined(separator: ", ")), not installed.", fix: install(needed)))
        }
        for (use, names) in Self.usefulElements {
            let missing = names.filter { !elements.hasElement($0) }
            guard !missing.isEmpty else { continue }
            findings.append(
                .warning("For \(use): \(missing.joined(separator: ", ")) not installed.", fix: install(missing)))
        }
        let count = Self.neededElements.count + Self.usefulElements.map(\.elements.count).reduce(0, +)
        return findings.isEmpty ? [.ok("All \(count) elements that were looked for are installed")] : findings
    }

    private func install(_ factories: [String]) -> String {
        let packages = Set(factories.map(elements.package(ofElement:))).sorted()
        return "sudo apt install \(packages.joined(separator: " "))"
    }

    private func hardwareFindings() -> [Finding] {
        let installed = encoders.filter { $0.isHardware && elements.hasElement($0.factory) }
        guard !installed.isEmpty else {
            return [.ok("No hardware encoder is installed, so the processor encodes")]
        }
        let usable = installed.filter { elements.canOpen($0.factory) }
        let unusable = installed.filter { !usable.contains($0) }.map(\.factory)
        let found =
            usable.isEmpty ? [] : [Finding.ok(usable.map { "\($0.codec) \($0.factory)" }.joined(separator: ", "))]
        guard !unusable.isEmpty else { return found }
        return found + [
            .warning(
                "\(unusable.joined(separator: ", ")): installed, but cannot be opened.",
                fix: "Install the driver (sudo apt install va-driver-all), and sudo usermod --append --groups "
                    + "video,render \(user()). Or let the processor encode.")
        ]
    }

    private func encoderFindings(_ encoder: KnownEncoder) -> [Finding] {
        guard elements.hasElement(encoder.factory), !encoder.isHardware || elements.canOpen(encoder.factory) else {
            // The plugins and the hardware have checks of their own.
            return []
        }
        let title = "\(encoder.codec) \(encoder.factory)"
        let rate: Double?
        do {
            rate = try encode(encoder, Self.size)
        } catch {
            let package = elements.package(ofElement: encoder.factory)
            return [.failure("\(title) failed: \(error)", fix: "sudo apt install --reinstall \(package)")]
        }
        guard let rate else {
            return [
                .warning(
                    "\(title) encoded no two frames at \(Self.size) within a second.",
                    fix: "Publish another codec, or a smaller size: --size 640x360.")
            ]
        }
        let text = "\(title): \(Int(rate)) frames/s at \(Self.size)"
        guard rate < Self.leastRate else { return [.ok(text)] }
        return [
            .warning(
                text + ", too slow for \(Int(Self.leastRate))",
                fix: "Publish a smaller size (--size 640x360) or another codec, or end other programs.")
        ]
    }

    private func decoderFindings(_ codec: String) -> [Finding] {
        guard let encoding = Encoding.named(codec) else { return [] }
        let choice: (factory: String, passedOver: [String])
        do throws(MediaError) {
            choice = try elements.firstUsable(of: encoding.decoders)
        } catch {
            return [.failure(error.message, fix: install(Array(encoding.decoders.suffix(1))))]
        }
        let element = ElementPlan(
            name: "decoder", factory: choice.factory, properties: Encoding.decoderProperties(choice.factory))
        let format = MediaFormat(
            .encodedVideo, codec, width: Self.size.width, height: Self.size.height, framesPerSecond: Self.leastRate)
        let seconds = elements.secondsPerFrame(element, format)
        let title = "\(codec) \(choice.factory)"
        // Some decoders cannot be measured, such as those whose encoder is missing.
        guard seconds > 0 else { return [.ok("\(title) can be opened")] }
        let text = "\(title): \(Figures.milliseconds(seconds * 1000)) for a frame of \(Self.size)"
        guard seconds > 1 / Self.leastRate else { return [.ok(text)] }
        return [
            .warning(
                text + ", too slow for \(Int(Self.leastRate)) frames/s",
                fix: "View fewer videos (--participant), or ask publishers for a smaller size.")
        ]
    }
}

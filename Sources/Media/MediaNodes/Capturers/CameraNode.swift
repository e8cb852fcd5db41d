import GStreamerKit
import MediaGraph

/// A V4L2 camera in the mode that fits best, brought to the size and rate that were asked for.
final class CameraNode: NodeType, RunningNode {
    /// A camera that was pulled out is noticed within 2 s: this and the watchdog's own interval.
    private static let silenceLimit = 1.5
    /// One that still answers may pause for longer: some stop while they adjust, and a busy machine holds pictures up.
    private static let patience = 5.0

    let name: String
    private let device: String
    private let watchdog: Watchdog

    private init(_ name: String, device: String, watchdog: Watchdog) {
        self.name = name
        self.device = device
        self.watchdog = watchdog
    }

    static let kind = NodeKind.camera

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        guard let width = request.integer("width"), let height = request.integer("height"),
            let fps = request.number("fps")
        else { preconditionFailure("the camera's settings have defaults") }
        let camera = try request.environment.camera(request.text("device"))
        guard let mode = CameraMode.best(of: camera.formats, width: width, height: height, framesPerSecond: fps)
        else {
            throw MediaError(
                code: MediaError.Code.cameraNoMode,
                message: "The camera \(camera.path) (\(camera.name)) offers no picture format that can be read; "
                    + "choose another camera.")
        }
        var plan = NodePlan(request.node)
        plan.resource = camera.path
        plan.add("v4l2src", as: "source", ["device": .text(camera.path)])
        plan.addFilter(mode.caps, as: "mode")
        var chain = ["source", "mode"]
        func append(_ factory: String, _ name: String, _ properties: [String: SettingValue] = [:]) {
            plan.add(factory, as: name, properties)
            chain.append(name)
        }
        if mode.isJPEG { append("jpegdec", "decoder") }
        let rate = min(fps, mode.framesPerSecond)
        if mode.framesPerSecond > fps { append("videorate", "rate", ["drop-only": true]) }
        if let crop = mode.crop(toShapeOf: width, height) {
            // Not every format that a camera gives can be cropped.
            append("videoconvert", "convert")
            append("videocrop", "crop", crop.properties)
            append("videoscale", "scale")
        } else {
            append("videoscale", "scale")
            append("videoconvert", "convert")
        }
        if request.flag("mirror") { append("videoflip", "mirror", ["video-direction": "horiz"]) }
        let format = MediaFormat.rawVideo(width: width, height: height, framesPerSecond: rate)
        append("capsfilter", "format", ["caps": .text(RawFormat.video(format))])
        for (from, to) in zip(chain, chain.dropFirst()) { plan.link(from, to) }
        plan.outputs["video"] = ElementPad("format")
        plan.formats["video"] = format
        plan.notes.append("\(camera.path) (\(camera.name)) in the mode \(mode.caps)")
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        guard let device = instance.plan.element("source")?.properties["device"]?.text else { return nil }
        let reporter = instance.reporter
        let name = instance.name
        let watchdog = Watchdog(
            limit: silenceLimit, patience: patience, control: instance.control,
            isThere: { DeviceProbe.openingProblem(of: device) == nil },
            onSilence: { reporter.fail(lost(device), name) })
        instance.element("source").source.onBuffer { _ in
            watchdog.feed()
            reporter.isReady(name)
            return .pass
        }
        reporter.await(name)
        return CameraNode(name, device: device, watchdog: watchdog)
    }

    func finish() {
        watchdog.stop()
    }

    func stopped() {
        watchdog.stop()
    }

    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? {
        switch failure.kind {
        case .busy: Self.busy(device)
        case .notFound: Devices.absent(device)
        case .cannotOpen where Devices.exists(device): Self.busy(device)
        case .cannotOpen: Devices.absent(device)
        case _ where !Devices.exists(device): Self.lost(device)
        // What makes I420 of the pictures failed, not the device.
        case _ where failure.path.first?.hasPrefix("v4l2src") != true: nil
        default: watchdog.isFed ? Self.lost(device) : silent(failure.message)
        }
    }

    var stalled: MediaError? { silent("none came in time") }

    private func silent(_ reason: String) -> MediaError {
        var reason = reason[...]
        if reason.hasSuffix(".") { reason.removeLast() }
        return MediaError(
            code: MediaError.Code.cameraSilent,
            message: "The camera \(device) can be opened and gives no pictures (\(reason)); plug it in again, or "
                + "choose another size or camera.")
    }

    private static func busy(_ device: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraBusy,
            message: "The camera \(device) is in use by another program or may not be opened; close the other program "
                + "or join the group video.")
    }

    private static func lost(_ device: String) -> MediaError {
        MediaError(
            code: MediaError.Code.cameraLost,
            message: "The camera \(device) gives no more pictures; check that it is still plugged in.")
    }
}

/// A way to read a camera.
struct CameraMode: Equatable {
    let format: String
    let width: Int
    let height: Int
    let framesPerSecond: Double

    static let jpeg = "MJPG"

    var isJPEG: Bool { format == Self.jpeg }

    var caps: String {
        let type = isJPEG ? "image/jpeg" : "video/x-raw,format=\(format)"
        return "\(type),width=\(width),height=\(height),framerate=\(fraction(framesPerSecond))"
    }

    /// How much of a picture is cut off on each side, in pixels.
    struct Crop: Equatable {
        let sides: Int
        let ends: Int

        var properties: [String: SettingValue] {
            ["left": .integer(sides), "right": .integer(sides), "top": .integer(ends), "bottom": .integer(ends)]
        }
    }

    /// What has to go so that a picture of the mode can be scaled to a size without being squeezed; nil where the shapes
    /// are the same.
    func crop(toShapeOf width: Int, _ height: Int) -> Crop? {
        // Even numbers: colour may be sampled at every second pixel.
        let sides = (self.width - self.height * width / height) / 4 * 2
        let ends = (self.height - self.width * height / width) / 4 * 2
        return sides > 0 || ends > 0 ? Crop(sides: max(sides, 0), ends: max(ends, 0)) : nil
    }

    /// Pixel formats that videoconvert reads, the cheapest to convert first; JPEG needs a decoder and comes after them,
    /// and after it what loses colour or is rare.
    private static let preference =
        ["I420", "YV12", "NV12", "YUY2", "UYVY", "RGB", "BGR", "BGRx", "RGBx", jpeg] + [
            "Y42B", "NV21", "YVYU", "NV16", "NV61", "NV24", "BGRA", "RGBA", "ARGB", "ABGR", "xRGB", "xBGR", "RGB16",
            "BGR15", "RGB15", "GRAY8", "GRAY16_LE", "GRAY16_BE",
        ]

    /// The mode that loses least: the size asked for or the nearest larger one, a rate no lower than asked, and among
    /// those the cheapest format.
    static func best(
        of formats: [CameraFormat], width: Int, height: Int, framesPerSecond: Double
    ) -> CameraMode? {
        var best: (mode: CameraMode, cost: [Double])?
        for format in formats {
            guard let rank = preference.firstIndex(of: format.pixelFormat) else { continue }
            let rates = format.framesPerSecond.sorted()
            guard let rate = rates.first(where: { $0 >= framesPerSecond * 0.99 }) ?? rates.last else { continue }
            let isTooSmall = format.width < width || format.height < height
            let distance = abs(format.width * format.height - width * height)
            let isTooSlow = rate < framesPerSecond * 0.99
            let cost = [
                isTooSlow ? framesPerSecond / max(rate, 0.1) : 0, isTooSmall ? 1 : 0, Double(distance), Double(rank),
                rate,
            ]
            if best.map({ cost.lexicographicallyPrecedes($0.cost) }) ?? true {
                best = (
                    CameraMode(
                        format: format.pixelFormat, width: format.width, height: format.height,
                        framesPerSecond: rate), cost
                )
            }
        }
        return best?.mode
    }
}

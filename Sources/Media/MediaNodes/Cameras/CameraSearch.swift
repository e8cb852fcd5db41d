import Cameras
public import MediaGraph
import Synchronization

extension Devices {
    /// The cameras that are plugged in, with at least one known format.
    public static func cameras() -> [CameraDevice] {
        CameraSystem.machine.places().compactMap { place in
            guard let device = try? CameraSystem.machine.open(place) else { return nil }
            defer { device.close() }
            return CameraDevice(place, (try? device.formats()) ?? [])
        }
    }

    /// The first camera that is not in use. Nil without one. Blocks for milliseconds.
    public static func firstCamera() -> CameraDevice? { try? camera("auto") }

    /// The camera with this name: one of `connectlive devices`, a path, a name of `/dev/v4l/by-id`, or `fixture:FILE` for
    /// a recorded camera. `auto` is the first one that is not in use.
    ///
    /// - Throws: `camera.absent`; `camera.unusable` for a device that captures no video; `camera.denied`; or `camera.busy`
    ///   if another program captures.
    public static func camera(_ device: String) throws(MediaError) -> CameraDevice {
        try choose(device).camera
    }

    /// With `mayReserve`, a camera that another program uses is skipped or refused. The check reserves the camera for a
    /// moment, in which no other program can begin to capture.
    ///
    /// - Parameter suits: throws an error for a camera that `auto` passes over.
    static func choose(
        _ name: String, of system: CameraSystem = .machine, mayReserve: Bool = true,
        suits: (CameraDevice, [FormatOffer]) throws(MediaError) -> Void = { _, _ in }
    ) throws(MediaError) -> CameraChoice {
        var camera: CameraDevice?
        // A node of this process that captures may end before the planned one begins.
        let opened = try system.open(name, mayReserve: mayReserve, mayBeOwn: true) { place, device throws(MediaError) in
            let offers = try device.formats()
            guard let found = CameraDevice(place, offers) else {
                throw MediaError(
                    code: MediaError.Code.cameraNoMode,
                    message: "The camera \(place.name) has no known format. Choose another camera.")
            }
            try suits(found, offers)
            camera = found
        }
        opened.device.close()
        guard let camera else { preconditionFailure("a camera that was opened was prepared") }
        return (camera, opened.passedOver)
    }

    /// Whether an error says that a camera cannot be opened now, and may be later by itself. Permissions may come after the
    /// device.
    static func isAway(_ error: MediaError) -> Bool {
        [MediaError.Code.cameraAbsent, MediaError.Code.cameraBusy, MediaError.Code.cameraDenied].contains(error.code)
    }
}

/// An environment whose cameras have more to say than `CameraFormat`: ranges of sizes, and rates as fractions.
protocol CameraEnvironment: PlanEnvironment {
    /// The camera that `device` of a camera node names. `auto` passes over one for which `suits` throws an error, which gets
    /// each with its offers.
    func camera(
        _ device: String, suits: (CameraDevice, [FormatOffer]) throws(MediaError) -> Void
    ) throws(MediaError) -> CameraChoice
    /// The controls of that camera. Nil if it does not respond.
    func deviceControls(_ path: String) -> [DeviceControl]?
    /// Whether a plan may capture from a camera, which others may see on its light.
    var mayCapture: Bool { get }
    /// The parameters of a camera's H.264, read from its first keyframe. Nil if none comes in time.
    func sequenceParameters(of path: String, in mode: CaptureMode) -> SequenceParameters?
}

extension CameraEnvironment {
    var mayCapture: Bool { true }
}

extension SystemEnvironment: CameraEnvironment {
    func camera(
        _ device: String, suits: (CameraDevice, [FormatOffer]) throws(MediaError) -> Void
    ) throws(MediaError) -> CameraChoice {
        try Devices.choose(device, mayReserve: !doesMeasure, suits: suits)
    }

    func deviceControls(_ path: String) -> [DeviceControl]? { Self.ask(path) { device in try? device.controls() } }

    /// Those that were read before and when, by the camera's lasting name and mode.
    private static let known = Mutex<[String: (set: SequenceParameters, time: Duration)]>([:])
    /// How long they count as read now: a program that has chosen a mode by them plans next.
    private static let memory = Duration.seconds(5)

    /// While this process captures from the camera, those that were read before: an edit plans it again.
    func sequenceParameters(of path: String, in mode: CaptureMode) -> SequenceParameters? {
        let key = "\((try? CameraSystem.machine.find(path))?.name ?? path) \(mode)"
        let last = Self.known.withLock { $0[key] }
        if let last, monotonicTime() - last.time < Self.memory { return last.set }
        guard let found = Self.ask(path, { device in try? SequenceParameters(of: device, in: mode) }) else {
            return last?.set
        }
        Self.known.withLock { $0[key] = (found, monotonicTime()) }
        return found
    }

    private static func ask<Answer>(_ path: String, _ body: (any CaptureDevice) -> Answer?) -> Answer? {
        guard let opened = try? CameraSystem.machine.open(path, mayReserve: false) else { return nil }
        defer { opened.device.close() }
        return body(opened.device)
    }
}

extension SequenceParameters {
    /// How long to wait for a keyframe: the first frame of most cameras.
    private static let wait = Duration.seconds(2)

    /// Starts the device, and reads its frames up to a keyframe.
    fileprivate init?(of device: any CaptureDevice, in mode: CaptureMode) throws(MediaError) {
        guard try device.configure(mode).mode.format == mode.format else { return nil }
        try device.start(buffers: 4)
        let end = monotonicTime() + Self.wait
        while monotonicTime() < end {
            guard case .frame(let frame) = try device.next(within: end - monotonicTime()) else { continue }
            if let set = SequenceParameters(frame: frame.copy()) {
                self = set
                return
            }
        }
        return nil
    }
}

extension PlanEnvironment {
    /// The camera of a name that suits. See `CameraEnvironment`.
    func find(
        camera device: String, suits: (CameraDevice, [FormatOffer]) throws(MediaError) -> Void
    ) throws(MediaError) -> CameraChoice {
        if let environment = self as? any CameraEnvironment { return try environment.camera(device, suits: suits) }
        let found = try camera(device)
        try suits(found.camera, found.camera.formats.compactMap(FormatOffer.init))
        return found
    }

    /// The controls of a camera. Nil if it does not respond. Then every control is accepted.
    func controls(of camera: CameraDevice) -> [DeviceControl]? {
        (self as? any CameraEnvironment)?.deviceControls(camera.path)
    }
}

extension CameraDevice {
    /// The sizes and rates listed for a device that supports ranges of them.
    private static let usualSizes = [
        (320, 180), (320, 240), (640, 360), (640, 480), (800, 600), (960, 540), (1024, 768), (1280, 720), (1920, 1080),
        (2560, 1440), (3840, 2160),
    ].map { FrameSize($0, $1) }
    private static let usualRates = [5, 10, 15, 20, 24, 25, 30, 50, 60].map { FrameRate($0) }

    /// Each known pixel format and size once. Nil without any.
    init?(_ place: CameraPlace, _ offers: [FormatOffer]) {
        var formats: [CameraFormat] = []
        for offer in offers {
            guard let name = offer.format.name else { continue }
            for size in offer.sizes {
                let rates = Self.rates(of: size.rates)
                for found in Self.sizes(of: size.range) {
                    let isKnown = formats.contains {
                        ($0.pixelFormat, $0.width, $0.height) == (name, found.width, found.height)
                    }
                    if isKnown { continue }
                    formats.append(
                        CameraFormat(
                            pixelFormat: name, width: found.width, height: found.height, framesPerSecond: rates))
                }
            }
        }
        guard !formats.isEmpty else { return nil }
        self.init(path: place.path, name: place.model, formats: formats)
    }

    private static func sizes(of range: SizeRange) -> [FrameSize] {
        if range.isDiscrete { return [range.largest] }
        // The largest size is what the driver can address, not what the sensor delivers.
        let usual = usualSizes.filter { range.nearest(to: $0) == $0 }
        return usual.isEmpty ? [range.largest] : usual
    }

    private static func rates(of offer: RateOffer) -> [Double] {
        switch offer {
        case .list(let rates): rates.sorted().map(\.perSecond)
        case .range(let slowest, let fastest):
            usualRates.filter { $0 >= slowest && $0 <= fastest }.map(\.perSecond)
        }
    }
}

extension FormatOffer {
    /// Nil for a format without a code of V4L2.
    fileprivate init?(_ format: CameraFormat) {
        guard let code = FourCC(name: format.pixelFormat) else { return nil }
        let rates = format.framesPerSecond.compactMap { FrameRate(perSecond: $0) }
        self.init(code, sizes: [.init(SizeRange(FrameSize(format.width, format.height)), .list(rates))])
    }
}

extension ControlValues {
    /// Controls with their own settings. The names are V4L2's.
    static let names = ["brightness", "contrast", "saturation", "hue"]

    /// The controls of a node's settings, its own settings first.
    init(of settings: some NodeSettings) throws(MediaError) {
        self.init()
        for name in Self.names { if let value = settings.optionalInteger(name) { set(name, to: value) } }
        if settings.isGiven("controls") { merge(try ControlValues(settings.text("controls"))) }
    }

    /// The controls of a changed setting.
    init(_ setting: String, _ value: SettingValue) throws(MediaError) {
        if let text = value.text {
            try self.init(text)
        } else {
            self.init()
            set(setting, to: value.integer ?? 0)
        }
    }
}

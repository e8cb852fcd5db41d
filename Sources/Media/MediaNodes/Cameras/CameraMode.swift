import Cameras
import MediaGraph

/// The requested output of a camera.
struct CameraWish: Equatable {
    private(set) var width: Int
    private(set) var height: Int
    private(set) var framesPerSecond: Double
    var format = Camera.Format.auto
    /// Whether a mode needs at least this size and rate.
    var isStrict = false
    var isMirrored = false
    /// Whether the node goes on while its camera is away.
    var isKeptUp = false
    /// Whether the settings have a rate, which an encoded stream must not exceed then.
    var isRateChosen = false
    /// Whether another camera may take over.
    var hasFailover = false
    /// The encoding that leaves the node: the camera's own `h264` or `mjpeg`, or a pixel format.
    private(set) var delivered = "I420"
    /// Whether a head has promised this output. A camera that does not encode it is then encoded here.
    private(set) var isPromised = false

    var isEncoded: Bool { MediaKind(ofEncoding: delivered) == .encodedVideo }

    /// The wish for an output in this encoding.
    func delivering(_ encoding: String) -> CameraWish {
        var wish = self
        wish.delivered = encoding
        return wish
    }

    /// The wish for an output that a head has promised.
    func promising(_ format: MediaFormat) -> CameraWish {
        var wish = delivering(format.encoding)
        wish.isPromised = true
        guard wish.isEncoded else { return wish }
        (wish.width, wish.height) = (format.width ?? width, format.height ?? height)
        wish.framesPerSecond = format.framesPerSecond ?? framesPerSecond
        return wish
    }

    /// Whether frames of a mode are the output as they are: the camera encodes them.
    func passes(_ mode: CaptureMode) -> Bool {
        isEncoded && mode.name == readable.first && (!isPromised || mode.size == size)
    }

    var words: String { "\(width)x\(height) at \(short(framesPerSecond))" }

    var size: FrameSize { FrameSize(width, height) }

    var rate: FrameRate { FrameRate(perSecond: framesPerSecond) ?? FrameRate(1) }

    /// The rule of `CaptureWish` chooses the mode.
    var capture: CaptureWish {
        CaptureWish(
            size, rate, formats: readable, favourite: delivered == "I420" || isEncoded ? nil : delivered,
            isRequired: isStrict, isExact: isEncoded && isPromised, otherwise: decoded)
    }

    /// Pixel formats that videoconvert reads, the fastest to convert first. JPEG follows because it needs a decoder,
    /// then formats with less colour and rare ones.
    static let preference =
        ["I420", "YV12", "NV12", "YUY2", "UYVY", "RGB", "BGR", "BGRx", "RGBx", CaptureMode.jpeg] + [
            "Y42B", "NV21", "YVYU", "NV16", "NV61", "NV24", "BGRA", "RGBA", "ARGB", "ABGR", "xRGB", "xBGR", "RGB16",
            "BGR15", "RGB15", "GRAY8", "GRAY16_LE", "GRAY16_BE",
        ]

    /// The formats of which the output is made if the camera has none of `readable`. H.264 is then decoded here.
    private var decoded: [String] {
        if isEncoded { return isPromised ? Self.preference + [CaptureMode.h264] : [] }
        return format == .raw && !isPromised ? [] : [CaptureMode.h264]
    }

    /// The formats of the camera of which the output can be made, best first.
    var readable: [String] {
        switch delivered {
        case "mjpeg": [CaptureMode.jpeg]
        case "h264": [CaptureMode.h264]
        default: format == .raw ? Self.preference.filter { $0 != CaptureMode.jpeg } : Self.preference
        }
    }
}

extension CameraWish {
    init(_ settings: some NodeSettings) {
        self.init(
            width: settings.integer("width"), height: settings.integer("height"),
            framesPerSecond: settings.number("fps"), format: Camera.Format(rawValue: settings.text("format")) ?? .auto)
        isStrict = settings.flag("strict")
        isMirrored = settings.flag("mirror")
        isKeptUp = settings.text("away") != "end"
        isRateChosen = settings.isGiven("fps")
        hasFailover = settings.isGiven("failover") && !settings.text("failover").isEmpty
        if format == .mjpeg || format == .h264 { delivered = format.rawValue }
    }

    /// The wish of a node whose output was planned.
    init(of instance: NodeInstance) {
        self = CameraWish(instance).delivering(instance.plan.formats["video"]?.encoding ?? "I420")
    }
}

extension CaptureMode {
    static let jpeg = "MJPG"
    static let h264 = "H264"

    /// GStreamer's name of the format.
    var name: String { format.name ?? "\(format)" }

    /// A rate that is unknown counts as this, so that frames beyond the wish are dropped.
    static let unknownRate = FrameRate(60)

    /// The caps of its frames, one a buffer.
    var caps: String {
        let type =
            format.isJPEG
            ? "image/jpeg"
            : format.isH264 ? "video/x-h264,stream-format=byte-stream,alignment=au" : "video/x-raw,format=\(name)"
        let rate = rate ?? Self.unknownRate
        return "\(type),width=\(size.width),height=\(size.height),framerate=\(fraction(rate.perSecond))"
    }

    /// The properties of `videocrop` with which frames of the mode can be scaled to a size without distortion. Nil if the
    /// aspect ratios are equal.
    func crop(toShapeOf width: Int, _ height: Int) -> [String: SettingValue]? {
        // Even numbers, because colour may be sampled at every second pixel.
        let sides = max((size.width - size.height * width / height) / 4 * 2, 0)
        let ends = max((size.height - size.width * height / width) / 4 * 2, 0)
        if sides == 0, ends == 0 { return nil }
        return ["left": .integer(sides), "right": .integer(sides), "top": .integer(ends), "bottom": .integer(ends)]
    }

    /// Whether the rate serves a wish. An unknown one may.
    func isFastEnough(_ wish: FrameRate) -> Bool {
        rate.map { $0.perSecond >= wish.perSecond * RateOffer.tolerance } ?? true
    }

    /// Why this mode was chosen.
    func reason(for wish: CameraWish) -> String {
        let size =
            size == FrameSize(wish.width, wish.height)
            ? "the requested size" : "the size nearest to \(wish.width)x\(wish.height)"
        let rate =
            self.rate == nil
            ? "the rate that is set"
            : isFastEnough(wish.rate)
                ? "the lowest sufficient rate"
                : "the highest available rate, below the requested \(short(wish.framesPerSecond))"
        let kind =
            wish.isEncoded
            ? "encoded by the camera"
            : name == wish.delivered
                ? "without a conversion"
                : format.isJPEG || format.isH264
                    ? "no raw format has this size and rate"
                    : "the cheapest format to convert"
        return "\(size), \(rate), \(kind)"
    }
}

private func short(_ number: Double) -> String {
    number == number.rounded() ? "\(Int(number))" : "\((number * 100).rounded() / 100)"
}

import Cameras
import MediaGraph

/// The requested output of a camera.
struct CameraWish: Equatable {
    enum Format: String {
        /// Raw or JPEG, decoded.
        case auto
        /// Raw only.
        case raw
        /// The camera's JPEG, passed through.
        case mjpeg
        /// The camera's H.264, passed through.
        case h264
    }

    let width: Int
    let height: Int
    let framesPerSecond: Double
    var format = Format.auto
    /// Whether a mode needs at least this size and rate.
    var isStrict = false
    var isMirrored = false
    /// Whether the node goes on while its camera is away.
    var isKeptUp = false

    var isEncoded: Bool { format == .mjpeg || format == .h264 }

    var words: String { "\(width)x\(height) at \(short(framesPerSecond))" }

    var rate: FrameRate { FrameRate(perSecond: framesPerSecond) ?? FrameRate(1) }

    /// The rule of `CaptureWish` chooses the mode.
    var capture: CaptureWish {
        CaptureWish(FrameSize(width, height), rate, formats: readable, isRequired: isStrict)
    }

    /// Pixel formats that videoconvert reads, the fastest to convert first. JPEG follows because it needs a decoder,
    /// then formats with less colour and rare ones.
    static let preference =
        ["I420", "YV12", "NV12", "YUY2", "UYVY", "RGB", "BGR", "BGRx", "RGBx", CaptureMode.jpeg] + [
            "Y42B", "NV21", "YVYU", "NV16", "NV61", "NV24", "BGRA", "RGBA", "ARGB", "ABGR", "xRGB", "xBGR", "RGB16",
            "BGR15", "RGB15", "GRAY8", "GRAY16_LE", "GRAY16_BE",
        ]

    /// The readable formats, best first.
    var readable: [String] {
        switch format {
        case .auto: Self.preference
        case .raw: Self.preference.filter { $0 != CaptureMode.jpeg }
        case .mjpeg: [CaptureMode.jpeg]
        case .h264: [CaptureMode.h264]
        }
    }
}

extension CameraWish {
    init(_ settings: some NodeSettings) {
        self.init(
            width: settings.integer("width"), height: settings.integer("height"),
            framesPerSecond: settings.number("fps"), format: Format(rawValue: settings.text("format")) ?? .auto)
        isStrict = settings.flag("strict")
        isMirrored = settings.flag("mirror")
        isKeptUp = !isEncoded && settings.text("away") != "end"
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
        return "\(type),width=\(size.width),height=\(size.height),framerate=\(rate.frames)/\(rate.seconds)"
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
    private func isFastEnough(_ wish: FrameRate) -> Bool {
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
            : format.isJPEG
                ? "no raw format has this size and rate"
                : "the cheapest format to convert"
        return "\(size), \(rate), \(kind)"
    }
}

/// An output that a camera could give, without or with an encoding of its own.
struct CameraOutput: Equatable {
    /// The best mode in its format.
    let mode: CaptureMode
    /// The format of the frames as the camera delivers them: `h264`, `mjpeg`, or a raw pixel format.
    let format: MediaFormat
}

extension CameraWish {
    /// The outputs that a camera could give for this wish, with the best mode for each format; the cheapest raw format
    /// first, then `mjpeg`, and `h264` last. Consumers that read one of them as it is need no conversion.
    func outputs(of offers: [FormatOffer]) -> [CameraOutput] {
        let there = Set(offers.compactMap(\.format.name))
        let names = Self.preference.filter { $0 != CaptureMode.jpeg } + [CaptureMode.jpeg, CaptureMode.h264]
        return names.filter(there.contains).compactMap { name in
            var wish = capture
            wish = CaptureWish(wish.size, wish.rate, formats: [name])
            return wish.ranked(offers).first.map { CameraOutput(mode: $0, format: $0.delivered) }
        }
    }

    /// The camera's other formats and why they were rejected, one sentence for each.
    func passedOver(of offers: [FormatOffer], for mode: CaptureMode) -> [String] {
        outputs(of: offers).filter { $0.mode.name != mode.name }.map { output in
            let (name, best) = (output.mode.name, output.mode)
            guard readable.contains(name) else {
                return "\(name): "
                    + (format == .auto
                        ? "passed through only if format requests it" : "\(format.rawValue) was requested")
            }
            let words = "\(best.size)" + (best.rate.map { " at \($0.short) frames/s" } ?? "")
            return isSlower(best, mode)
                ? "\(name): at most \(words)"
                : best.size != mode.size
                    ? "\(name): nothing closer than \(words)" : "\(name): the same \(words), slower to convert"
        }
    }

    private func isSlower(_ one: CaptureMode, _ other: CaptureMode) -> Bool {
        guard let mine = one.rate, let yours = other.rate else { return false }
        return mine.perSecond < yours.perSecond * RateOffer.tolerance
    }
}

extension CaptureMode {
    /// The format of the frames as the camera delivers them.
    fileprivate var delivered: MediaFormat {
        let rate = rate?.perSecond
        if format.isJPEG || format.isH264 {
            return MediaFormat(
                .encodedVideo, format.isJPEG ? "mjpeg" : "h264", width: size.width, height: size.height,
                framesPerSecond: rate)
        }
        return .rawVideo(name, width: size.width, height: size.height, framesPerSecond: rate)
    }
}

private func short(_ number: Double) -> String {
    number == number.rounded() ? "\(Int(number))" : "\((number * 100).rounded() / 100)"
}

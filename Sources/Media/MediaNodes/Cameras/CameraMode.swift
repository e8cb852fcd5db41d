import MediaGraph

/// A capture mode of a camera.
struct CameraMode: Equatable {
    let format: String
    let width: Int
    let height: Int
    let framesPerSecond: Double
    /// Whether the camera's encoded frames are passed through.
    var isUntouched = false

    static let jpeg = "MJPG"
    static let h264 = "H264"

    var isJPEG: Bool { format == Self.jpeg }

    var caps: String {
        let type = isJPEG ? "image/jpeg" : format == Self.h264 ? "video/x-h264" : "video/x-raw,format=\(format)"
        return "\(type),width=\(width),height=\(height),framerate=\(fraction(framesPerSecond))"
    }

    /// The properties of `videocrop` with which frames of the mode can be scaled to a size without distortion. Nil if the
    /// aspect ratios are equal.
    func crop(toShapeOf width: Int, _ height: Int) -> [String: SettingValue]? {
        // Even numbers, because colour may be sampled at every second pixel.
        let sides = max((self.width - self.height * width / height) / 4 * 2, 0)
        let ends = max((self.height - self.width * height / width) / 4 * 2, 0)
        if sides == 0, ends == 0 { return nil }
        return ["left": .integer(sides), "right": .integer(sides), "top": .integer(ends), "bottom": .integer(ends)]
    }

    /// Pixel formats that videoconvert reads, the fastest to convert first. JPEG follows because it needs a decoder,
    /// then formats with less colour and rare ones.
    static let preference =
        ["I420", "YV12", "NV12", "YUY2", "UYVY", "RGB", "BGR", "BGRx", "RGBx", jpeg] + [
            "Y42B", "NV21", "YVYU", "NV16", "NV61", "NV24", "BGRA", "RGBA", "ARGB", "ABGR", "xRGB", "xBGR", "RGB16",
            "BGR15", "RGB15", "GRAY8", "GRAY16_LE", "GRAY16_BE",
        ]

    /// The best mode: the requested size or the next larger one, at least the requested rate, and then the format that
    /// is fastest to convert.
    static func best(of formats: [CameraFormat], _ wish: CameraWish) -> CameraMode? {
        let modes = formats.compactMap { format -> (mode: CameraMode, cost: [Double])? in
            let rates = format.framesPerSecond.sorted()
            guard let rank = wish.readable.firstIndex(of: format.pixelFormat),
                let rate = rates.first(where: { $0 >= wish.framesPerSecond * 0.99 }) ?? rates.last
            else { return nil }
            let isTooSmall = format.width < wish.width || format.height < wish.height
            let distance = abs(format.width * format.height - wish.width * wish.height)
            let isTooSlow = rate < wish.framesPerSecond * 0.99
            let cost = [
                isTooSlow ? wish.framesPerSecond / max(rate, 0.1) : 0, isTooSmall ? 1 : 0, Double(distance),
                Double(rank), rate,
            ]
            let mode = CameraMode(
                format: format.pixelFormat, width: format.width, height: format.height, framesPerSecond: rate,
                isUntouched: wish.isEncoded)
            return (mode, cost)
        }
        return modes.min { $0.cost.lexicographicallyPrecedes($1.cost) }?.mode
    }

    // MARK: Reasons

    /// Why this mode was chosen.
    func reason(for wish: CameraWish) -> String {
        let size =
            width == wish.width && height == wish.height
            ? "the requested size" : "the size nearest to \(wish.width)x\(wish.height)"
        let rate =
            framesPerSecond >= wish.framesPerSecond * 0.99
            ? "the lowest sufficient rate"
            : "the highest available rate, below the requested \(short(wish.framesPerSecond))"
        let kind =
            isUntouched
            ? "encoded by the camera"
            : isJPEG
                ? "no raw format has this size and rate"
                : "the cheapest format to convert"
        return "\(size), \(rate), \(kind)"
    }

    /// The camera's other formats and why they were rejected, one sentence for each.
    static func passedOver(of formats: [CameraFormat], for mode: CameraMode, _ wish: CameraWish) -> [String] {
        var names: [String] = []
        for format in formats where format.pixelFormat != mode.format && !names.contains(format.pixelFormat) {
            names.append(format.pixelFormat)
        }
        return names.map { name in
            guard wish.readable.contains(name) else {
                return "\(name): "
                    + (wish.format == .auto ? "no installed decoder" : "\(wish.format.rawValue) was requested")
            }
            let same = formats.filter { $0.pixelFormat == name }
            guard let best = best(of: same, wish) else { return "\(name): no suitable size and rate" }
            let size = "\(best.width)x\(best.height) at \(short(best.framesPerSecond)) frames/s"
            return best.framesPerSecond < mode.framesPerSecond * 0.99
                ? "\(name): at most \(size)"
                : best.width != mode.width || best.height != mode.height
                    ? "\(name): nothing closer than \(size)" : "\(name): the same \(size), slower to convert"
        }
    }
}

extension CameraWish {
    init(_ settings: some NodeSettings) {
        self.init(
            width: settings.integer("width"), height: settings.integer("height"),
            framesPerSecond: settings.number("fps"), format: Format(rawValue: settings.text("format")) ?? .auto)
        isKeptUp = !isEncoded && settings.text("away") != "end"
    }
}

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

    /// Whether the node goes on while its camera is away.
    var isKeptUp = false

    var isEncoded: Bool { format == .mjpeg || format == .h264 }

    var words: String { "\(width)x\(height) at \(short(framesPerSecond))" }

    /// The readable formats, best first.
    var readable: [String] {
        switch format {
        case .auto: CameraMode.preference
        case .raw: CameraMode.preference.filter { $0 != CameraMode.jpeg }
        case .mjpeg: [CameraMode.jpeg]
        case .h264: [CameraMode.h264]
        }
    }
}

private func short(_ number: Double) -> String {
    number == number.rounded() ? "\(Int(number))" : "\((number * 100).rounded() / 100)"
}

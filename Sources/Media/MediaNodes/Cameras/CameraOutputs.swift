import Cameras
import MediaGraph

/// A format that a camera node can deliver, and the mode of the camera of which it is made.
struct CameraOutput: Equatable {
    let mode: CaptureMode
    /// `h264` and `mjpeg` in the size and rate of the mode, raw frames in those of the settings.
    let format: MediaFormat

    var isEncoded: Bool { format.kind == .encodedVideo }
    /// Whether the frames leave the node in the pixel format or encoding of the mode.
    var isUnchanged: Bool { isEncoded || mode.name == format.encoding }

    fileprivate init(_ mode: CaptureMode, as encoding: String, for wish: CameraWish) {
        self.mode = mode
        format =
            MediaKind(ofEncoding: encoding) == .encodedVideo
            ? MediaFormat(
                .encodedVideo, encoding, width: mode.size.width, height: mode.size.height,
                framesPerSecond: (mode.rate ?? CaptureMode.unknownRate).perSecond)
            : .rawVideo(
                encoding, width: wish.width, height: wish.height,
                framesPerSecond: min(wish.framesPerSecond, (mode.rate ?? CaptureMode.unknownRate).perSecond))
    }

    /// As the planner compares it with the others.
    func alternative(for wish: CameraWish) -> FormatAlternative {
        let origin = "\(mode.size)" + (mode.rate.map { " at \($0.short) frames/s" } ?? "")
        return FormatAlternative(
            isUnchanged ? "\(format.encoding) \(origin)" : "\(format.encoding) from \(mode.name) \(origin)", format,
            work: work(for: wish), shortfall: shortfall(for: wish))
    }

    private func work(for wish: CameraWish) -> Work {
        if isEncoded { return .none }
        let scales = mode.size == wish.size ? 0 : 1
        return mode.format.isJPEG || mode.format.isH264
            ? Work(decodes: 1, conversions: scales) : Work(conversions: scales + (isUnchanged ? 0 : 1))
    }

    /// A rate that is too low counts most, then a size that is too small. An encoded stream is neither scaled nor slowed
    /// down, so it falls short with every other size, and beyond a rate that was chosen.
    func shortfall(for wish: CameraWish) -> Double {
        var shortfall = 0.0
        if let rate = mode.rate, !mode.isFastEnough(wish.rate) {
            shortfall += 1000 * (wish.framesPerSecond / rate.perSecond - 1)
        }
        if mode.size.width < wish.width || mode.size.height < wish.height {
            shortfall += 2 - min(1, Double(mode.size.pixels) / Double(wish.size.pixels))
        } else if isEncoded, mode.size != wish.size {
            shortfall += 1
        }
        let isTooFast = mode.rate.map { $0.perSecond * RateOffer.tolerance > wish.framesPerSecond } ?? false
        if isEncoded, wish.isRateChosen, isTooFast { shortfall += 0.5 }
        return shortfall
    }
}

extension CameraWish {
    /// Pixel formats in which frames leave the node without a conversion: those that encoders take.
    static let direct = ["NV12", "YUY2", "UYVY", "YV12"]

    /// The outputs that a camera could give, each with its best mode: I420, other pixel formats, `mjpeg`, `h264`. The one
    /// that the settings request, if they request one.
    ///
    /// - Parameter camera: its name, for the message.
    /// - Throws: `camera.no-mode`.
    func outputs(of offers: [FormatOffer], camera: String) throws(MediaError) -> [CameraOutput] {
        if format == .mjpeg || format == .h264 {
            return [CameraOutput(try capture.choose(from: offers, of: camera), as: delivered, for: self)]
        }
        let others = others(of: offers)
        do throws(MediaError) {
            let best = try delivering("I420").capture.choose(from: offers, of: camera)
            // The planner decodes it for those that need raw frames.
            if best.format.isH264, !others.isEmpty { return others }
            return [CameraOutput(best, as: "I420", for: self)] + others
        } catch {
            if others.isEmpty { throw error }
            return others
        }
    }

    /// Those beside I420.
    private func others(of offers: [FormatOffer]) -> [CameraOutput] {
        var names = Self.direct.map { ($0, $0) }
        if format == .auto, obstacle == nil { names += [(CaptureMode.jpeg, "mjpeg"), (CaptureMode.h264, "h264")] }
        return names.compactMap { name, encoding in
            CaptureWish(size, rate, formats: [name]).ranked(offers).first.map {
                CameraOutput($0, as: encoding, for: self)
            }
        }.filter { !isStrict || $0.shortfall(for: self) == 0 }
    }

    /// Why an encoding of the camera does not pass unless the settings request it.
    private var obstacle: String? {
        if isMirrored { return "encoded frames cannot be mirrored" }
        return hasFailover ? "the camera of failover may not encode" : nil
    }

    /// The formats of the camera of which no output is made and why, one sentence for each.
    func passedOver(of offers: [FormatOffer], beside outputs: [CameraOutput]) -> [String] {
        let there = Set(offers.compactMap(\.format.name)).subtracting(outputs.map(\.mode.name))
        return (Self.preference + [CaptureMode.h264]).filter(there.contains).compactMap { name in
            let isEncoded = name == CaptureMode.jpeg || name == CaptureMode.h264
            if format != .auto, isEncoded || format != .raw { return "\(name): \(format.rawValue) was requested" }
            if isEncoded, let obstacle { return "\(name): \(obstacle)" }
            guard let mode = outputs.first?.mode,
                let best = CaptureWish(size, rate, formats: [name]).ranked(offers).first
            else { return nil }
            let words = "\(best.size)" + (best.rate.map { " at \($0.short) frames/s" } ?? "")
            if isSlower(best, mode) { return "\(name): at most \(words)" }
            return best.size == mode.size
                ? "\(name): the same \(words), slower to convert" : "\(name): nothing closer than \(words)"
        }
    }

    private func isSlower(_ one: CaptureMode, _ other: CaptureMode) -> Bool {
        guard let mine = one.rate, let yours = other.rate else { return false }
        return mine.perSecond < yours.perSecond * RateOffer.tolerance
    }
}

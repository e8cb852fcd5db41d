internal import Cameras

/// The size and rate in which `publish` captures a camera.
///
/// By the rule of `CaptureWish` the nearest to 1280x720 at 30 frames/s, or to what the command line says. Never larger than the
/// camera's mode, because scaling up adds nothing. Without a mode of raw or JPEG frames, a mode of H.264 in its own size,
/// because it then passes through.
struct CaptureChoice: Equatable {
    static let usualSize = FrameSize(1280, 720)
    static let usualRate = 30

    let width: Int
    let height: Int
    let framesPerSecond: Int
    /// Whether the camera encodes H.264 in this size. It passes through at its own rate.
    let passesH264: Bool

    /// Nil if no node reads any format of the camera.
    init?(of offers: [FormatOffer], size: FrameSize = usualSize, framesPerSecond: Int = usualRate) {
        let readable = Set(offers.map(\.format).filter { $0.bitsPerPixel != nil || $0.isJPEG }.compactMap(\.name))
        func best(_ formats: [String], _ size: FrameSize) -> CaptureMode? {
            CaptureWish(size, FrameRate(framesPerSecond), formats: formats).ranked(offers).first
        }
        let read = readable.isEmpty ? nil : best(readable.sorted(), size)
        guard let mode = read ?? best(["H264"], size) else { return nil }
        let covers = read != nil && mode.size.width >= size.width && mode.size.height >= size.height
        // Encoders of 4:2:0 video need even sizes.
        width = (covers ? size.width : mode.size.width) & ~1
        height = (covers ? size.height : mode.size.height) & ~1
        self.framesPerSecond =
            mode.rate.map { min(framesPerSecond, max(1, Int($0.perSecond.rounded()))) } ?? framesPerSecond
        let chosen = FrameSize(width, height)
        passesH264 = best(["H264"], chosen)?.size == chosen
    }

    /// One line for `devices`.
    var sentence: String {
        let isUsual = (width, height, framesPerSecond) == (Self.usualSize.width, Self.usualSize.height, Self.usualRate)
        return "publish sends \(width)x\(height) at \(framesPerSecond) frames/s"
            + (isUsual ? "" : ": no readable mode has \(Self.usualSize) at \(Self.usualRate)")
    }

    /// The choice for a camera that is plugged in. Nil for one that is not, and for one that cannot be described.
    static func of(_ camera: String, size: FrameSize?, framesPerSecond: Int?) -> CaptureChoice? {
        guard let opened = try? CameraSystem.machine.open(camera) else { return nil }
        defer { opened.device.close() }
        guard let offers = try? opened.device.formats() else { return nil }
        return CaptureChoice(of: offers, size: size ?? usualSize, framesPerSecond: framesPerSecond ?? usualRate)
    }
}

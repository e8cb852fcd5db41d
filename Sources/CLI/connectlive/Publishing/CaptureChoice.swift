internal import Cameras

/// The size and rate in which `publish` captures a camera.
///
/// By the rule of `CaptureWish` the nearest to 1280x720 at 30 frames/s, or to what the command line says. Never larger than the
/// camera's mode, because scaling up adds nothing.
struct CaptureChoice: Equatable {
    static let usualSize = FrameSize(1280, 720)
    static let usualRate = 30

    let width: Int
    let height: Int
    let framesPerSecond: Int

    /// Nil if no node reads any format of the camera.
    init?(of offers: [FormatOffer], size: FrameSize = usualSize, framesPerSecond: Int = usualRate) {
        let readable = Set(offers.map(\.format).filter { $0.bitsPerPixel != nil || $0.isJPEG }.compactMap(\.name))
        let wish = CaptureWish(size, FrameRate(framesPerSecond), formats: readable.sorted())
        guard let mode = wish.ranked(offers).first else { return nil }
        let covers = mode.size.width >= size.width && mode.size.height >= size.height
        // Encoders of 4:2:0 video need even sizes.
        width = (covers ? size.width : mode.size.width) & ~1
        height = (covers ? size.height : mode.size.height) & ~1
        self.framesPerSecond =
            mode.rate.map { min(framesPerSecond, max(1, Int($0.perSecond.rounded()))) } ?? framesPerSecond
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

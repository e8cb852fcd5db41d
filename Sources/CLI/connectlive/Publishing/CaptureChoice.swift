internal import Cameras
internal import MediaGraph
internal import MediaNodes

/// The size and rate in which `publish` captures a camera.
///
/// The camera's own H.264 passes unencoded, so it is the largest up to 1920x1080 at 30 frames/s. Everything else has to be
/// encoded, which costs processor time: by the rule of `CaptureWish` the nearest to 1280x720 at 30 frames/s. The command line
/// may state both. Never larger than the camera's mode, because scaling up adds nothing. Without a mode of raw or JPEG frames,
/// a mode of H.264 in its own size, because it then passes through.
struct CaptureChoice: Equatable {
    static let usualSize = FrameSize(1280, 720)
    static let largestPassing = FrameSize(1920, 1080)
    static let usualRate = 30

    let width: Int
    let height: Int
    let framesPerSecond: Int
    /// The mode of the camera's H.264 in this size. It passes through at its own rate, unless its profile prevents that.
    private(set) var passing: CaptureMode?
    /// One sentence about H.264 that does not pass.
    private var obstacle: String?
    /// The largest mode that is left out.
    private var larger: CaptureMode?
    /// The rate of the command line, or the usual one.
    private let wishedRate: Int
    private var isUsual: Bool { (width, height) == (Self.usualSize.width, Self.usualSize.height) }

    /// Nil if no node reads any format of the camera.
    ///
    /// - Parameters:
    ///   - size, framesPerSecond: those of the command line, if it states them.
    ///   - mayPass: whether H.264 of the camera may decide the size.
    init?(of offers: [FormatOffer], size: FrameSize? = nil, framesPerSecond: Int? = nil, mayPass: Bool = true) {
        wishedRate = framesPerSecond ?? Self.usualRate
        let rate = FrameRate(wishedRate)
        let readable = Set(offers.map(\.format).filter { $0.bitsPerPixel != nil || $0.isJPEG }.compactMap(\.name))
            .sorted()
        func modes(_ formats: [String], _ size: FrameSize) -> [CaptureMode] {
            CaptureWish(size, rate, formats: formats).ranked(offers)
        }
        let wish = size ?? Self.usualSize
        let read = readable.isEmpty ? nil : modes(readable, wish).first
        guard let mode = read ?? modes(["H264"], wish).first else { return nil }
        let isScaled = read != nil || !mayPass
        let covers = isScaled && mode.size.width >= wish.width && mode.size.height >= wish.height
        // Encoders of 4:2:0 video need even sizes.
        let encoded = (covers ? wish : mode.size).even
        let encodedRate = mode.rate.map { min(Double(rate.frames), $0.perSecond) } ?? Double(rate.frames)
        func passes(_ own: CaptureMode) -> Bool {
            let limit = Self.largestPassing
            let isLarger =
                size == nil && own.size.pixels >= encoded.pixels && own.size.width <= limit.width
                && own.size.height <= limit.height
            // A rate that the command line states is also the highest one.
            let isTooFast =
                framesPerSecond != nil && (own.rate.map { $0.perSecond > Double(rate.frames) * 1.02 } ?? false)
            return (own.size == encoded || own.size == size || isLarger) && own.isFast(encodedRate) && !isTooFast
        }
        passing = mayPass ? modes(["H264"], size ?? Self.largestPassing).first(where: passes) : nil
        let chosen = passing?.size ?? encoded
        (width, height) = (chosen.width, chosen.height)
        let pace = passing.map { $0.rate?.perSecond ?? Double(rate.frames) } ?? encodedRate
        self.framesPerSecond = max(1, Int(pace.rounded()))
        guard size == nil else { return }
        let longest = FrameSize(FrameSize.longest, FrameSize.longest)
        larger = modes(mayPass ? readable + ["H264"] : readable, longest)
            .filter { $0.size.even.pixels > chosen.pixels }
            .max { one, other in
                (one.isFast(encodedRate) ? 1 : 0, one.size.pixels) < (
                    other.isFast(encodedRate) ? 1 : 0, other.size.pixels
                )
            }
    }

    /// The same for a camera of libcamera, whose processor scales to any size.
    static let sentenceOfLibraryCamera =
        "publish sends \(usualSize) at \(usualRate) frames/s; --size and --fps ask for more"

    /// One line for `devices` and `publish`.
    var sentence: String { sentence() }

    /// - Parameter other: the choice if H.264 does not pass, while its profile is unknown.
    func sentence(or other: CaptureChoice? = nil) -> String {
        let isBest = isUsual && framesPerSecond == wishedRate
        var text = "publish sends \(width)x\(height) at \(framesPerSecond) frames/s"
        if passing != nil {
            text += ": the camera's own H.264"
            if let other {
                text += ", or \(other.width)x\(other.height) encoded here if its profile is not baseline"
            }
        } else if !isBest, width * height <= Self.usualSize.pixels {
            text += ": no readable mode has \(Self.usualSize) at \(wishedRate)"
        }
        return ([text] + [obstacle, leftOut].compactMap(\.self)).joined(separator: ". ")
    }

    /// Why a larger mode is left out, and the options that ask for it.
    private var leftOut: String? {
        guard let larger else { return nil }
        let size = larger.size.even
        var options = "--size \(size)"
        let reason: String
        if let rate = larger.rate, !larger.isFast(Double(framesPerSecond)) {
            reason = "which has only \(rate.short) frames/s"
            options += " --fps \(max(1, Int(rate.perSecond.rounded())))"
        } else if larger.format.isH264 {
            reason = "which not every viewer decodes in time"
        } else if passing != nil {
            reason = "which would have to be encoded"
        } else {
            let tenths = Int((Double(size.pixels) / Double(width * height) * 10).rounded())
            reason = "which costs about \(tenths / 10).\(tenths % 10) times as much to encode"
        }
        return "It leaves out \(size), \(reason): \(options) asks for it"
    }

    /// The choice for a camera that is plugged in. Nil for one that is not, and for one that cannot be described. Looks at
    /// H.264 that would pass, for its profile, which takes up to 2 s.
    static func of(_ camera: String, size: FrameSize?, framesPerSecond: Int?, mayPass: Bool = true) -> CaptureChoice? {
        var found: (choice: CaptureChoice, encoded: CaptureChoice?)?
        let opened = try? CameraSystem.machine.open(camera, mayBeOwn: true) { place, device throws(MediaError) in
            let offers = try device.formats()
            func choice(_ mayPass: Bool) -> CaptureChoice? {
                CaptureChoice(of: offers, size: size, framesPerSecond: framesPerSecond, mayPass: mayPass)
            }
            guard let best = choice(mayPass) else {
                throw MediaError(
                    code: MediaError.Code.cameraNoMode, message: "The camera \(place.name) has no readable format.")
            }
            found = (best, choice(false))
        }
        guard let opened, let found else { return nil }
        opened.device.close()
        guard let mode = found.choice.passing, let cause = Devices.obstacle(toPassing: mode, of: opened.place) else {
            return found.choice
        }
        var encoded = found.encoded
        encoded?.obstacle = "Its H.264 in \(mode.size) does not pass: \(cause)"
        return encoded
    }
}

extension CaptureChoice {
    /// One sentence about frames that are scaled up, because no mode of the camera is as large as the command line states.
    /// Nil for others, and for a camera that is not plugged in. Blocks for milliseconds.
    static func enlargement(
        of camera: String, to size: FrameSize, framesPerSecond: Int?, mayPass: Bool = true
    ) -> String? {
        var choice: CaptureChoice?
        let opened = try? CameraSystem.machine.open(camera, mayReserve: false, mayBeOwn: true) {
            _, device throws(MediaError) in
            choice = CaptureChoice(
                of: try device.formats(), size: size, framesPerSecond: framesPerSecond, mayPass: mayPass)
        }
        opened?.device.close()
        return choice?.enlargement(to: size)
    }

    /// The sentence for a choice that was made for this size.
    func enlargement(to size: FrameSize) -> String? {
        guard width < size.width || height < size.height else { return nil }
        return "publish scales the camera's frames up to \(size): its best mode is \(width)x\(height) at "
            + "\(framesPerSecond) frames/s. --size \(width)x\(height) sends them as they are"
    }
}

extension FrameSize {
    /// The largest size within it whose sides are even.
    fileprivate var even: FrameSize { FrameSize(width & ~1, height & ~1) }
}

extension CaptureMode {
    /// Whether it is at least as fast. One without a listed rate may be.
    fileprivate func isFast(_ perSecond: Double) -> Bool {
        rate.map { $0.perSecond >= perSecond * RateOffer.tolerance } ?? true
    }
}

import FrameSocket
import Glibc

/// The formats that a program's raw output may have instead of the stated one: another pixel format of the stated size, or a
/// usual size.
struct RawSizeGuess: Sendable {
    /// Usual sizes of cameras and screens.
    private static let sizes = [
        (160, 120), (176, 144), (320, 180), (320, 240), (352, 288), (424, 240), (480, 270), (640, 360), (640, 480),
        (720, 480), (720, 576), (800, 448), (800, 600), (848, 480), (854, 480), (960, 540), (960, 720), (1024, 576),
        (1024, 768), (1280, 720), (1280, 800), (1280, 960), (1280, 1024), (1600, 900), (1600, 1200), (1920, 1080),
        (1920, 1200), (2560, 1440), (2592, 1944), (3840, 2160), (4096, 2160),
    ]
    /// How far an estimate of the size may be off.
    private static let tolerance = 0.15
    /// With fewer frames, an estimate is worth nothing.
    private static let leastFrames = 5.0
    private static let most = 3

    private let stated: FrameFormat
    private let others: [FrameFormat]

    init(_ stated: FrameFormat) {
        self.stated = stated
        func format(_ encoding: FrameFormat.Encoding, _ width: Int, _ height: Int) -> FrameFormat {
            FrameFormat(
                encoding, width: width, height: height, rateNumerator: stated.rateNumerator,
                rateDenominator: stated.rateDenominator)
        }
        var others = Self.sizes.map { format(stated.encoding, $0.0, $0.1) }
        var lengths: Set = [stated.bytesPerFrame]
        for encoding in FrameFormat.Encoding.allCases where encoding.isRaw {
            let other = format(encoding, stated.width, stated.height)
            if lengths.insert(other.bytesPerFrame).inserted { others.append(other) }
        }
        self.others = others
    }

    /// Names the formats of which a program's whole output is complete frames, such as "30 frames of I420 320x240". Nil if
    /// there is none.
    ///
    /// - Parameter seconds: for how long bytes came. The formats whose number of frames fits to it come first. If that says
    ///   too little, those of about the stated size do.
    func formats(of bytes: Int, within seconds: Double) -> String? {
        let expected = 1 + seconds * stated.framesPerSecond
        func distance(_ format: FrameFormat) -> Double {
            let isPaced = expected > Self.leastFrames
            let size = isPaced ? Double(bytes) / expected : Double(stated.bytesPerFrame)
            return abs(log(Double(format.bytesPerFrame) / size))
        }
        let fitting = nearest(among: others.filter { bytes > 0 && bytes % $0.bytesPerFrame == 0 }, distance)
        guard !fitting.isEmpty else { return nil }
        let names = fitting.map { format in
            let count = bytes / format.bytesPerFrame
            return "\(count) frame\(count == 1 ? "" : "s") of \(format)"
        }
        return names.joinedAsAlternatives
    }

    /// Names the formats of frames as large as those of a program that keeps to the stated rate, such as
    /// "I420 1280x720". Nil if too little has come to know that, or if none is near.
    ///
    /// - Parameter seconds: since the first byte.
    func formats(at pace: Int, in seconds: Double) -> String? {
        let frames = seconds * stated.framesPerSecond
        guard frames >= Self.leastFrames else { return nil }
        let size = Double(pace) / (1 + frames)
        func distance(_ format: FrameFormat) -> Double { abs(log(Double(format.bytesPerFrame) / size)) }
        let near = nearest(among: others.filter { distance($0) < Self.tolerance }, distance)
        return near.isEmpty ? nil : near.map(\.description).joinedAsAlternatives
    }

    /// Names the formats whose frames have this length, such as "I420 320x240". Nil if there is none.
    func formats(ofLength length: Int) -> String? {
        let fitting = others.filter { $0.bytesPerFrame == length }.prefix(Self.most)
        return fitting.isEmpty ? nil : fitting.map(\.description).joinedAsAlternatives
    }

    /// Some of the formats. Of those of the same length, another size comes first.
    private func nearest(among formats: [FrameFormat], _ distance: (FrameFormat) -> Double) -> [FrameFormat] {
        let rated = formats.enumerated().map { (distance: distance($1), index: $0, format: $1) }
        return rated.sorted { ($0.distance, $0.index) < ($1.distance, $1.index) }.prefix(Self.most).map(\.format)
    }
}

extension [String] {
    /// Such as "a, b or c".
    fileprivate var joinedAsAlternatives: String {
        count > 1 ? dropLast().joined(separator: ", ") + " or \(self[count - 1])" : first ?? ""
    }
}

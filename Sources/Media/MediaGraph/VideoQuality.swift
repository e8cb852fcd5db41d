/// Which property of a video an encoder keeps when network or processor do not suffice. The bitrate falls first in any
/// case, down to a third.
///
/// The values are those of W3C's content hints. `motion` is `maintain-framerate` of W3C's degradation preferences, `detail`
/// is `maintain-resolution`.
public enum Degradation: String, Sendable, Hashable, Codable, CaseIterable {
    /// Keeps the frame rate: the size falls. For cameras.
    case motion
    /// Keeps the size: the frame rate falls. For screens.
    case detail
    /// Lowers frame rate and size in turn.
    case balanced
}

/// Why an encoded video is worse than its source and its encoder could make it.
public enum QualityLimitation: String, Sendable, Hashable, Codable {
    /// Nothing limits the video.
    case none
    /// The network of a consumer carries less. W3C's statistics call it `bandwidth`.
    case network
    /// The networks of all subscribers of a room carry less than the own one.
    case subscribers
    /// This machine encodes too slowly. W3C's statistics call it `cpu`.
    case processor
}

/// The size and rate in which an encoder encodes at present, and why.
public struct VideoQuality: Sendable, Hashable {
    /// In pixels.
    public var width: Int
    /// In pixels.
    public var height: Int
    /// Nil if the source does not state its rate.
    public var framesPerSecond: Double?
    /// The reason why the video is worse than it could be.
    public var limitation: QualityLimitation
    /// The bits of encoded video per second that the networks of the consumers carry. Nil if nothing limits them.
    public var limitedBitsPerSecond: Int?
    /// The share of packets that the network of the consumer loses, 0...1. Nil if it is unknown, or does not limit the video.
    public var lostShare: Double?
    /// The layers of a video that is sent in several, the lowest first. Empty for one encoding. The size above is that of the
    /// largest layer that is sent.
    public var layers: [Layer] = []

    /// A layer of a video.
    public struct Layer: Sendable, Hashable {
        /// In pixels.
        public var width: Int
        /// In pixels.
        public var height: Int
        /// Whether it is encoded and sent.
        public var isActive: Bool

        /// A layer of this size in pixels.
        public init(width: Int, height: Int, isActive: Bool) {
            (self.width, self.height, self.isActive) = (width, height, isActive)
        }
    }

    /// The quality of a video without layers, with its size in pixels.
    public init(
        width: Int, height: Int, framesPerSecond: Double? = nil, limitation: QualityLimitation = .none,
        limitedBitsPerSecond: Int? = nil
    ) {
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
        self.limitation = limitation
        self.limitedBitsPerSecond = limitedBitsPerSecond
    }
}

extension VideoQuality: CustomStringConvertible {
    /// Fewer losses are repaired, and hardly lower the rate.
    package static let leastLoss = 0.03

    /// Such as `the network carries 640 kbit/s: 640x360 at 15`.
    public var description: String {
        "\(cause): \(isUnwatched ? layers.list(isActive: true) : format)"
    }

    /// The same with the size and rate before, and whether they have risen: `quality rose: 640x360 (before: 320x180); not full yet,
    /// because the network carries 640 kbit/s`.
    package func change(from before: VideoQuality) -> String {
        let past = format == before.format ? "" : " (before: \(before.format))"
        guard limitation != .none, isBetter(than: before) else { return "\(self)\(past)" }
        return "quality rose: \(format)\(past); not full yet, \(hasWay ? "although" : "because") \(cause)"
    }

    /// Whether size or rate has risen, and neither has fallen.
    package func isBetter(than before: VideoQuality) -> Bool {
        let more = (framesPerSecond ?? 0) - (before.framesPerSecond ?? framesPerSecond ?? 0)
        return pixels >= before.pixels && more > -Self.sameRate && (pixels > before.pixels || more > Self.sameRate)
    }

    /// The frames per second by which rates differ that look the same.
    package static let sameRate = 0.05

    /// Of all that is sent.
    private var pixels: Int {
        layers.isEmpty ? width * height : layers.reduce(0) { $0 + ($1.isActive ? $1.width * $1.height : 0) }
    }

    private var cause: String {
        let carried = limitedBitsPerSecond.map { "\(($0 + 500) / 1000) kbit/s" } ?? "more again"
        return switch limitation {
        case .none: "full quality"
        case .network where isLossy:
            "the network loses \(Int((100 * (lostShare ?? 0)).rounded())) % of packets"
                + (limitedBitsPerSecond == nil ? "" : " and carries \(carried)")
        case .network: "the network carries \(carried)"
        case .subscribers where isUnwatched: "no viewer gets \(layers.list(isActive: false))"
        case .subscribers: "the networks of all subscribers carry \(carried)"
        case .processor: "the processor is too slow"
        }
    }

    private var isLossy: Bool { limitation == .network && lostShare ?? 0 >= Self.leastLoss }

    /// Whether no viewer gets the larger layers.
    private var isUnwatched: Bool { limitation == .subscribers && limitedBitsPerSecond == nil && !layers.isEmpty }

    /// Whether the networks carry all of the video again, so that it soon gets better.
    private var hasWay: Bool {
        [.network, .subscribers].contains(limitation) && limitedBitsPerSecond == nil && !isLossy && !isUnwatched
    }

    /// Such as `640x360 at 15`, or the layers that are sent.
    package var format: String {
        let rate = framesPerSecond.map { rate in
            let tenths = Int((rate * 10).rounded())
            return " at \(tenths / 10)" + (tenths.isMultiple(of: 10) ? "" : ".\(tenths % 10)")
        }
        return layers.isEmpty ? "\(width)x\(height)\(rate ?? "")" : layers.format
    }
}

extension [VideoQuality.Layer] {
    /// Such as `320x180 and 640x360, without 1280x720`.
    fileprivate var format: String {
        let off = filter { !$0.isActive }
        return list(isActive: true) + (off.isEmpty ? "" : ", without \(list(isActive: false))")
    }

    /// Such as `320x180 and 640x360`.
    fileprivate func list(isActive: Bool) -> String {
        let sizes = filter { $0.isActive == isActive }.map { "\($0.width)x\($0.height)" }
        return sizes.isEmpty ? "nothing" : sizes.joinedAsList
    }
}

/// One of the encodings of a published video, each of another size: simulcast. A server forwards to each viewer the largest
/// one that the viewer's network carries.
public enum VideoLayer: String, Sendable, Hashable, Codable, CaseIterable, Comparable {
    // The lowest first.
    /// A quarter, the half and all of the width and height.
    case quarter, half, full

    /// Width and height of the source, divided by this, are those of the layer.
    public var divisor: Int {
        switch self {
        case .quarter: 4
        case .half: 2
        case .full: 1
        }
    }

    /// The identifier in session descriptions and packets (RFC 8851).
    public var rid: String { String(rawValue.prefix(1)) }

    /// The layer with this identifier. Nil if there is none.
    public init?(rid: String) {
        guard let layer = Self.allCases.first(where: { $0.rid == rid }) else { return nil }
        self = layer
    }

    public static func < (left: VideoLayer, right: VideoLayer) -> Bool { left.divisor > right.divisor }

    /// So many layers, the lowest first. The whole size is one of them.
    public static func layers(_ count: Int) -> [VideoLayer] { Array(allCases.suffix(max(1, count))) }

    /// The most layers for frames of a size: one below the pixels of 480x270, two below those of 960x540, and otherwise three,
    /// as in libwebrtc (`kSimulcastFormatsVP8` of `video/config/simulcast.cc`). Three if the size is unknown.
    public static func most(forWidth width: Int?, height: Int?) -> Int {
        guard let width, let height else { return allCases.count }
        let pixels = pixelCount(width, height)
        return pixels < 480 * 270 ? 1 : pixels < 960 * 540 ? 2 : allCases.count
    }

    /// Pixels of the layer's width or height. Even, as H.264 needs it.
    public func scaled(_ pixels: Int) -> Int { self == .full ? pixels : max(2, pixels / divisor / 2 * 2) }
}

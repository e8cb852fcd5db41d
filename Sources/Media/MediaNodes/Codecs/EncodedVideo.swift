import MediaGraph

/// A codec of pictures that a node of ours encodes with. The raw value is the encoding's name in formats.
enum EncodedVideo: String, Sendable, CaseIterable {
    case vp8
    case vp9
    case h264
    case av1

    var title: String {
        switch self {
        case .vp8: "VP8"
        case .vp9: "VP9"
        case .h264: "H.264"
        case .av1: "AV1"
        }
    }

    /// What an encoder's output is held to; nil where there is nothing to choose.
    var outputCaps: String? {
        switch self {
        case .h264: "video/x-h264,profile=constrained-baseline,stream-format=byte-stream,alignment=au"
        case .vp8, .vp9, .av1: nil
        }
    }

    /// How many bits the codec needs for the quality that VP8 gives with one. Rounded figures of the codecs' own
    /// comparisons at realtime speeds, where they save less than at their best.
    private var economy: Double {
        switch self {
        case .vp8, .h264: 1
        case .vp9: 0.75
        case .av1: 0.65
        }
    }

    /// The bitrate when nobody chose one.
    func defaultBitrate(width: Int, height: Int, framesPerSecond: Double) -> Bitrate {
        let figure = VideoBitrate.default(width: width, height: height, framesPerSecond: framesPerSecond)
        return .kilobitsPerSecond(Int(Double(figure.kilobitsPerSecond) * economy))
    }

    /// The same for a planned format; nil when its size is not known.
    func defaultBitrate(for format: MediaFormat) -> Bitrate? {
        guard let width = format.width, let height = format.height else { return nil }
        return defaultBitrate(width: width, height: height, framesPerSecond: format.framesPerSecond ?? 30)
    }
}

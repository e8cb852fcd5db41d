/// The media that a link carries.
@frozen
public enum MediaKind: String, Sendable, Hashable, Codable {
    /// Uncompressed frames; I420 unless a port names another pixel format.
    case rawVideo
    /// Interleaved signed 16-bit stereo at 48 kHz.
    case rawAudio
    /// Frames of a codec.
    case encodedVideo
    /// Packets of an audio codec.
    case encodedAudio
    /// RTP packets.
    case rtp
    /// Other data between GStreamer elements: bytes of a file, a container, subtitles.
    case data
    /// Frames that the application pushes or receives outside of the graph.
    case applicationFrames

    /// The kind's name in messages and documents, such as `raw video`.
    public var words: String {
        switch self {
        case .rawVideo: "raw video"
        case .rawAudio: "raw audio"
        case .encodedVideo: "encoded video"
        case .encodedAudio: "encoded audio"
        case .rtp: "RTP"
        case .data: "other data"
        case .applicationFrames: "frames of the application"
        }
    }
}

/// The format of a link's media, as far as the plan can know it. Nil values are settled when media arrives.
public struct MediaFormat: Sendable, Hashable, Codable {
    /// The kind of the media.
    public var kind: MediaKind
    /// The pixel format (`I420`), sample format (`S16LE`) or codec (`vp8`, `h264`, `opus`).
    public var encoding: String
    /// In pixels.
    public var width: Int?
    /// In pixels.
    public var height: Int?
    /// Of video, in frames per second.
    public var framesPerSecond: Double?
    /// In samples per second and channel.
    public var sampleRate: Int?
    /// Of audio, the number of channels.
    public var channels: Int?
    /// Of encoded media, in bits per second.
    public var bitsPerSecond: Int?
    /// Whether frames of encoded video may consist of several spatial layers, which hardware decoders do not take in one buffer.
    /// Nil means no.
    public var hasLayers: Bool?

    /// A format of a kind and an encoding. Nil values are not known.
    public init(
        _ kind: MediaKind, _ encoding: String, width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil,
        sampleRate: Int? = nil, channels: Int? = nil, bitsPerSecond: Int? = nil
    ) {
        self.kind = kind
        self.encoding = encoding
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
        self.sampleRate = sampleRate
        self.channels = channels
        self.bitsPerSecond = bitsPerSecond
    }

    /// Raw video; I420 unless another pixel format is given.
    public static func rawVideo(
        _ pixelFormat: String = "I420", width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil
    ) -> MediaFormat {
        MediaFormat(.rawVideo, pixelFormat, width: width, height: height, framesPerSecond: framesPerSecond)
    }

    /// The raw audio between nodes: interleaved signed 16-bit stereo at 48 kHz.
    public static let rawAudio = MediaFormat(.rawAudio, "S16LE", sampleRate: 48_000, channels: 2)
}

extension MediaFormat: CustomStringConvertible {
    /// Such as `I420 1280x720 at 30 frames/s`.
    public var description: String {
        var text = encoding
        if let width, let height { text += " \(width)x\(height)" }
        if let framesPerSecond { text += " at \(Self.short(framesPerSecond)) frames/s" }
        if let sampleRate { text += " \(Self.short(Double(sampleRate) / 1000)) kHz" }
        if let channels { text += channels == 1 ? " mono" : channels == 2 ? " stereo" : " \(channels) channels" }
        if let bitsPerSecond { text += ", \((bitsPerSecond + 500) / 1000) kbit/s" }
        return text
    }

    private static func short(_ number: Double) -> String {
        Int(exactly: number).map { "\($0)" } ?? "\((number * 100).rounded() / 100)"
    }
}

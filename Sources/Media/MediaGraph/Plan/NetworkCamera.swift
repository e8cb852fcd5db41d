/// The video and audio streams that a network camera (an RTSP server) offers, in the order of its description.
public typealias NetworkCamera = [NetworkCameraStream]

/// One stream of a network camera.
public struct NetworkCameraStream: Sendable, Hashable {
    /// The place of its m-line among all of the description, from 0. A description may have several of one kind.
    public let line: Int
    /// Whether the stream is video. Audio otherwise.
    public let isVideo: Bool
    /// The registered name of the payload format, in capitals: `H264`, `MPEG4-GENERIC`.
    public let payloadFormat: String
    /// Samples per second of audio, nil if a stream of AAC does not state them; 90000 for video.
    public let clockRate: Int?
    /// The number of audio channels.
    public let channels: Int?
    /// In pixels, if the camera reports it.
    public let width: Int?
    /// In pixels, if the camera reports it.
    public let height: Int?
    /// In frames per second, if the camera reports it.
    public let framesPerSecond: Double?
    /// In seconds; nil for a live stream.
    public let length: Double?

    /// A stream of a description, such as a test's.
    public init(
        line: Int, isVideo: Bool, payloadFormat: String, clockRate: Int? = nil, channels: Int? = nil,
        width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil, length: Double? = nil
    ) {
        self.line = line
        self.isVideo = isVideo
        self.payloadFormat = payloadFormat
        self.clockRate = clockRate
        self.channels = channels
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
        self.length = length
    }
}

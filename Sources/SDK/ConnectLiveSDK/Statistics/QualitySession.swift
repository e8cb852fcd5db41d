internal import RoomClient
internal import RoomProtocol

/// The direction of a session's media.
public enum SessionDirection: String, Sendable, Hashable, Codable {
    /// Of this participant's streams to the server.
    case up
    /// Of the others' streams from the server.
    case down
}

/// The media of a stream.
public enum StreamMediaType: String, Sendable, Hashable, Codable {
    /// Audio samples.
    case audio
    /// Video frames.
    case video
}

/// How many qualities of a stream are sent.
public enum StreamSubType: String, Sendable, Hashable, Codable {
    /// That of audio, and of a video unless another one is chosen.
    case none
    /// One quality.
    case single
    /// Several, of which each viewer gets one (simulcast).
    case multiple
}

/// The figures of one session, for a log or a server of the application.
public struct QualitySession: Sendable, Encodable {
    /// Whether the session sends or receives.
    public let direction: SessionDirection
    /// How many sessions of this direction the room had before. Another one begins, and counts from zero, when the room joins
    /// again: `RoomDelegate.onReconnected(wasResumed: false, seconds:)`.
    public let index: Int
    /// One for each sent RTP stream (each layer of a video that is sent in several), or for each receiver that carries a
    /// stream.
    public let metrics: [QualityMetric]
}

/// The figures of one RTP stream. Counters only grow, except `packetsLost`. A figure of the other direction, of the other
/// media, or one that is not measured is nil, and left out of the encoded form.
public struct QualityMetric: Sendable, Encodable {
    /// The media of the stream.
    public let type: StreamMediaType
    /// The stream id.
    public let streamId: Int
    /// Bytes of payload, repeats included, without headers.
    public internal(set) var bytesSent: Int?
    /// RTP packets, with repeats and padding.
    public internal(set) var packetsSent: Int?
    /// The amplitude of the audio that is encoded (root mean square of the last chunk), 0...1. Nil for audio that nothing here
    /// encodes.
    public internal(set) var srcAudioLevel: Double?
    /// Frames that reached the encoder's queue. Nil for video that nothing here encodes.
    public internal(set) var srcFrames: Int?
    /// Frames that were encoded. Nil for video that nothing here encodes.
    public internal(set) var framesEncoded: Int?
    /// Frames of video that were sent.
    public internal(set) var framesSent: Int?
    /// The raw value of the layer's `VideoProfileType`: empty for a video in one layer.
    public internal(set) var profile: String?
    /// The receiver that carries the stream. The following counters are those of the receiver, over all streams that it has
    /// carried.
    public internal(set) var receiverId: Int?
    /// Bytes of payload, repeats included, without headers.
    public internal(set) var bytesReceived: Int?
    /// Packets that were lost on the way from the server, before repair (RFC 3550, section 6.4.1).
    public internal(set) var packetsLost: Int?
    /// Samples of each channel, with those that conceal losses.
    public internal(set) var totalSamplesReceived: Int?
    /// The amplitude of the audio (root mean square of the last chunk), 0...1. Nil while none is decoded.
    public internal(set) var audioLevel: Double?
    /// Frames of video that were complete.
    public internal(set) var framesReceived: Int?
    /// Frames of video that were decoded.
    public internal(set) var framesDecoded: Int?
}

extension QualitySession {
    init(_ session: SessionStatistics) {
        direction = SessionDirection(rawValue: session.direction.rawValue) ?? .up
        index = session.index
        metrics = session.sent.map { QualityMetric($0) } + session.received.compactMap { QualityMetric($0) }
    }
}

extension QualityMetric {
    fileprivate init(_ sent: SessionStatistics.Sent) {
        self.init(type: sent.isVideo ? .video : .audio, streamId: sent.stream)
        (bytesSent, packetsSent) = (sent.bytesSent, sent.packetsSent)
        srcAudioLevel = sent.sound?.level
        guard sent.isVideo else { return }
        (srcFrames, framesEncoded) = (sent.encoder?.framesCaptured, sent.encoder?.framesEncoded)
        (framesSent, profile) = (sent.framesSent, sent.profile.rawValue)
    }

    /// Nil for a receiver that carries no stream.
    fileprivate init?(_ received: SessionStatistics.Received) {
        guard let stream = received.stream else { return nil }
        self.init(type: received.media == .video ? .video : .audio, streamId: stream)
        receiverId = received.receiverId
        (bytesReceived, packetsLost) = (received.bytesReceived, received.packetsLost)
        if received.media == .video {
            (framesReceived, framesDecoded) = (received.totals.framesReceived, received.totals.framesDecoded)
        } else {
            (totalSamplesReceived, audioLevel) = (received.samplesReceived, received.audioLevel)
        }
    }

    private init(type: StreamMediaType, streamId: Int) { (self.type, self.streamId) = (type, streamId) }
}

extension SessionStatistics.Sent {
    /// As the server takes a viewer's profile for a layer.
    var profile: VideoProfileType {
        guard layers > 1 else { return .empty }
        return rank == layers - 1 ? .high : rank == 0 ? .low : .mid
    }
}

extension SessionStatistics.Received {
    /// The number of the m-line, which is its mid in the descriptions of our servers.
    var receiverId: Int? { Int(mid) }
}

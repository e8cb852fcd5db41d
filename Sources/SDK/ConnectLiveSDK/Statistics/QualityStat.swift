/// The quality of a room since the last `RoomDelegate.onStat`. An "interval" is that time, or the time since the session's
/// start. Counters without it count since the session's start. A value that is not measured is nil.
public struct QualityStat: Sendable {
    /// Of the streams that this participant sends. Nil before it publishes.
    public let localStat: LocalQualityStat?
    /// Of the streams that it receives. Nil before the room is connected.
    public let remoteStat: RemoteQualityStat?
}

/// The session that sends.
public struct LocalQualityStat: Sendable {
    /// As `QualitySession.index`.
    public let index: Int
    /// One for each sent audio.
    public let audioMetrics: [LocalAudioMetrics]
    /// One for each layer of a video that is sent in several.
    public let videoMetrics: [LocalVideoMetrics]
    /// Bytes in all datagrams of the session other than those of ICE, also in those that the socket refused.
    public let bytesSentPerInterval: Int
    /// These datagrams.
    public let packetsSentPerInterval: Int
    /// The round trip to the server in seconds. Nil before the first measurement.
    public let currentRTT: Double?
}

/// The session that receives.
public struct RemoteQualityStat: Sendable {
    /// As `QualitySession.index`.
    public let index: Int
    /// One for each receiver of audio that carries a stream.
    public let audioMetrics: [RemoteAudioMetrics]
    /// One for each receiver of video that carries a stream.
    public let videoMetrics: [RemoteVideoMetrics]
    /// The rate that the link from the server carries, in bits per second. The server tells it only while it is less than the
    /// subscribed videos need. Nil otherwise.
    public let availableIncomingBitrate: Double?
    /// Bytes in all datagrams of the session other than those of ICE.
    public let bytesReceivedPerInterval: Int
    /// These datagrams.
    public let packetsReceivedPerInterval: Int
    /// The round trip to the server in seconds. Nil before the first measurement.
    public let currentRTT: Double?
}

/// A sent video, or one of its layers.
public struct LocalVideoMetrics: Sendable {
    /// This participant.
    public let participantId: String
    /// The stream id, unique in the room.
    public let streamId: Int
    /// As `QualityMetric.profile`.
    public let profile: String
    /// Bytes of payload, repeats included, without headers.
    public let bytesSent: Int
    /// RTP packets, with repeats and padding.
    public let packetsSent: Int
    /// Those of the interval.
    public let packetsSentPerInterval: Int
    /// Nil for video that nothing here encodes, as for `srcFrames`.
    public let framesEncoded: Int?
    /// Frames that were sent.
    public let framesSent: Int
    /// Keyframe requests (PLI) that arrived.
    public let pliCount: Int
    /// Frames that reached the encoder's queue.
    public let srcFrames: Int?
    /// In pixels. Nil before the first frame.
    public let frameWidth: Int?
    /// In pixels. Nil before the first frame.
    public let frameHeight: Int?
    /// Encoded frames in the last second. Nil in the first second, and for video that nothing here encodes.
    public let framesPerSecond: Double?
}

/// A received video. The counters are those of the receiver, over all streams that it has carried.
public struct RemoteVideoMetrics: Sendable {
    /// The publisher.
    public let participantId: String
    /// The stream id, unique in the room.
    public let streamId: Int
    /// As `QualityMetric.receiverId`.
    public let receiverId: Int?
    /// Bytes of payload, repeats included, without headers.
    public let bytesReceived: Int
    /// Frames that were complete.
    public let framesReceived: Int
    /// Frames that were decoded.
    public let framesDecoded: Int
    /// Keyframe requests (PLI) that were sent.
    public let pliCount: Int
    /// Packets that were lost on the way from the server, before repair. Falls when packets come late.
    public let packetsLost: Int
    /// Those of the interval. Negative if more came late than were lost.
    public let packetsLostPerInterval: Int
    /// In pixels. Nil before the first frame.
    public let frameWidth: Int?
    /// In pixels. Nil before the first frame.
    public let frameHeight: Int?
    /// Decoded frames in the last second. Nil in the first second.
    public let framesPerSecond: Double?
}

/// Sent audio.
public struct LocalAudioMetrics: Sendable {
    /// This participant.
    public let participantId: String
    /// The stream id, unique in the room.
    public let streamId: Int
    /// Bytes of payload, without headers.
    public let bytesSent: Int
    /// RTP packets, with repeats and padding.
    public let packetsSent: Int
    /// Those of the interval.
    public let packetsSentPerInterval: Int
    /// The amplitude of the audio that is encoded (root mean square of the last chunk), 0...1. Nil for audio that nothing here
    /// encodes.
    public let srcAudioLevel: Double?
}

/// Received audio. The counters are those of the receiver, over all streams that it has carried.
public struct RemoteAudioMetrics: Sendable {
    /// The publisher.
    public let participantId: String
    /// The stream id, unique in the room.
    public let streamId: Int
    /// As `QualityMetric.receiverId`.
    public let receiverId: Int?
    /// Bytes of payload, without headers.
    public let bytesReceived: Int
    /// Samples of each channel, with those that conceal losses. Nil before audio is decoded.
    public let totalSamplesReceived: Int?
    /// Packets that were lost on the way from the server, before repair. Falls when packets come late.
    public let packetsLost: Int
    /// Those of the interval. Negative if more came late than were lost.
    public let packetsLostPerInterval: Int
    /// The amplitude of the audio (root mean square of the last chunk), 0...1. Nil while none is decoded.
    public let audioLevel: Double?
}

extension RoomDelegate {
    public func onStat(stat: QualityStat) {}
}

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
    public let audioMetrics: [LocalAudioMetrics]
    /// One for each layer of a video that is sent in several.
    public let videoMetrics: [LocalVideoMetrics]
    /// Bytes in all datagrams of the session other than those of ICE.
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
    public let audioMetrics: [RemoteAudioMetrics]
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
    public let streamId: Int
    /// As `QualityMetric.profile`.
    public let profile: String
    /// Bytes of payload, repeats included, without headers.
    public let bytesSent: Int
    public let packetsSent: Int
    public let packetsSentPerInterval: Int
    /// Nil for video that nothing here encodes, as for `srcFrames`.
    public let framesEncoded: Int?
    public let framesSent: Int
    /// Keyframe requests (PLI) that arrived.
    public let pliCount: Int
    /// Frames that reached the encoder's queue.
    public let srcFrames: Int?
    /// In pixels. Nil before the first frame.
    public let frameWidth: Int?
    public let frameHeight: Int?
    /// Encoded frames in the last second. Nil in the first second, and for video that nothing here encodes.
    public let framesPerSecond: Double?
}

/// A received video. The counters are those of the receiver, over all streams that it has carried.
public struct RemoteVideoMetrics: Sendable {
    /// The publisher.
    public let participantId: String
    public let streamId: Int
    public let receiverId: Int?
    /// Bytes of payload, repeats included, without headers.
    public let bytesReceived: Int
    public let framesReceived: Int
    public let framesDecoded: Int
    /// Keyframe requests (PLI) that were sent.
    public let pliCount: Int
    /// Packets that were lost on the way from the server, before repair. Falls when packets come late.
    public let packetsLost: Int
    public let packetsLostPerInterval: Int
    /// In pixels. Nil before the first frame.
    public let frameWidth: Int?
    public let frameHeight: Int?
    /// Decoded frames in the last second. Nil in the first second.
    public let framesPerSecond: Double?
}

/// Sent audio.
public struct LocalAudioMetrics: Sendable {
    /// This participant.
    public let participantId: String
    public let streamId: Int
    /// Bytes of payload, without headers.
    public let bytesSent: Int
    public let packetsSent: Int
    public let packetsSentPerInterval: Int
    /// The amplitude of the audio that is encoded (root mean square of the last chunk), 0...1. Nil for audio that nothing here
    /// encodes.
    public let srcAudioLevel: Double?
}

/// Received audio. The counters are those of the receiver, over all streams that it has carried.
public struct RemoteAudioMetrics: Sendable {
    /// The publisher.
    public let participantId: String
    public let streamId: Int
    public let receiverId: Int?
    /// Bytes of payload, without headers.
    public let bytesReceived: Int
    /// Samples of each channel, with those that conceal losses. Nil before audio is decoded.
    public let totalSamplesReceived: Int?
    /// Packets that were lost on the way from the server, before repair. Falls when packets come late.
    public let packetsLost: Int
    public let packetsLostPerInterval: Int
    /// The amplitude of the audio (root mean square of the last chunk), 0...1. Nil while none is decoded.
    public let audioLevel: Double?
}

extension RoomDelegate {
    public func onStat(stat: QualityStat) {}
}

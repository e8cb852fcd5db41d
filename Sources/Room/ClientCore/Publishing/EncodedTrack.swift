package import MediaGraph
package import RoomProtocol

/// One encoded stream to publish. Its owner passes the packets to `RoomConnection.send`.
///
/// The connection calls its members on the loop.
package protocol EncodedTrack: AnyObject {
    /// The packets' codec. They use the payload type of `Codec`.
    var codec: Codec { get }
    /// Counters of the video encoder. Nil without one, as for audio and for a camera's own H.264.
    var encoderStatistics: MediaStatistics.VideoEncoder? { get }
    /// Counters of the audio encoder. Nil without one, as for video.
    var audioEncoderStatistics: MediaStatistics.AudioEncoder? { get }
    /// The format of the video that nothing encodes, as far as it is known.
    var videoFormat: MediaFormat? { get }

    /// Whether the packets show the track's source. After a change, call `RoomConnection.stateChanged`.
    var streamState: StreamState { get }

    /// Limits the encoder to this bitrate for 3 s, in bits per second of encoded media. 0 lets that of video encode nothing.
    /// Does nothing for media that nothing here encodes.
    func limitRate(bitsPerSecond: Int)
    /// Lets the encoder of audio prepare its packets for this loss, in percent. Called about twice a second, while the server
    /// reports.
    func expectLoss(percent: Int)
    /// Requests a keyframe. Does nothing for codecs that can be decoded from any packet.
    func requestKeyframe()
    /// The layers of the video, the lowest first. Empty for one encoding. Layers may come and go while the track is published,
    /// but only those that it has when it is offered are sent.
    var layers: [VideoLayer] { get }
    /// Counters of the encoder of a layer. Nil if nothing encodes it.
    func encoderStatistics(of layer: VideoLayer) -> MediaStatistics.VideoEncoder?
    /// Limits the encoder of a layer likewise.
    ///
    /// - Parameter keepsSize: whether further layers are sent, so that this one keeps its size.
    func limitRate(bitsPerSecond: Int, of layer: VideoLayer, keepsSize: Bool)
    /// Ends the limit of a layer that is not sent: the encoder goes by the other rooms.
    func endLimit(of layer: VideoLayer)
    func requestKeyframe(of layer: VideoLayer)
    /// Other layers than before are sent.
    func layersChanged(_ quality: VideoQuality)
    /// The room takes one size only.
    func layersRefused()
    /// The stream ended, or is not published after all. Its packets have no consumer.
    func disconnect()
}

extension EncodedTrack {
    package var videoFormat: MediaFormat? { nil }

    package var audioEncoderStatistics: MediaStatistics.AudioEncoder? { nil }

    package var streamState: StreamState { .live }

    package func limitRate(bitsPerSecond: Int) {}

    package func expectLoss(percent: Int) {}

    package var layers: [VideoLayer] { [] }

    package func encoderStatistics(of layer: VideoLayer) -> MediaStatistics.VideoEncoder? {
        layer == .full ? encoderStatistics : nil
    }

    package func limitRate(bitsPerSecond: Int, of layer: VideoLayer, keepsSize: Bool) {
        if layer == .full { limitRate(bitsPerSecond: bitsPerSecond) }
    }

    package func requestKeyframe(of layer: VideoLayer) {
        if layer == .full { requestKeyframe() }
    }

    package func endLimit(of layer: VideoLayer) {}
    package func layersChanged(_ quality: VideoQuality) {}
    package func layersRefused() {}
}

/// A track and its published properties.
package struct TrackOffer {
    package var track: any EncodedTrack
    package var attributes: StreamAttributes
    /// Whether the server is to record it.
    package var isRecorded: Bool

    package init(
        _ track: any EncodedTrack, _ attributes: StreamAttributes = StreamAttributes(), isRecorded: Bool = false
    ) {
        self.track = track
        self.attributes = attributes
        self.isRecorded = isRecorded
    }
}

package import MediaGraph
package import RoomProtocol

/// One encoded stream to publish, from a `LocalCapture` or a node of a graph.
///
/// All members are callable on any thread.
package protocol OutgoingTrack: AnyObject, Sendable {
    /// The packets' codec. They use the payload type of `Codec`.
    var codec: Codec { get }
    /// Counters of the video encoder. Nil without one, as for audio and for a camera's own H.264.
    var encoderStatistics: MediaStatistics.VideoEncoder? { get }

    /// Passes the packets of each encoded frame to `receiver`, on an encoder's thread. Nil drops them.
    func connect(_ receiver: (@Sendable (RTPBatch) -> Void)?)
    /// Requests a keyframe. Does nothing for codecs that can be decoded from any packet.
    func requestKeyframe()
}

/// A track and its published properties.
package struct Publication: Sendable {
    package var track: any OutgoingTrack
    /// Free text that all participants see beside the stream.
    package var extraValue: String

    package init(_ track: any OutgoingTrack, extraValue: String = "") {
        self.track = track
        self.extraValue = extraValue
    }
}

package import MediaGraph
package import RoomProtocol

/// One encoded stream that a room can take, whoever encodes it: a `LocalCapture`, or a node of a graph.
///
/// Everything may be called on any thread.
package protocol OutgoingTrack: AnyObject, Sendable {
    /// What the packets carry, at the payload type that `Codec` has for it.
    var codec: Codec { get }
    /// Counters of the video encoder; nil where there is none, as for sound and for a camera's own H.264.
    var encoderStatistics: MediaStatistics.VideoEncoder? { get }

    /// Hands the packets of each encoded frame there from now on, on a thread of the encoder's; nil lets them fall.
    func connect(_ receiver: (@Sendable (RTPBatch) -> Void)?)
    /// Nothing where a decoder can start anywhere.
    func requestKeyframe()
}

/// A track as it is published.
package struct Publication: Sendable {
    package var track: any OutgoingTrack
    /// A free text that everyone in the room sees beside the stream.
    package var extraValue: String

    package init(_ track: any OutgoingTrack, extraValue: String = "") {
        self.track = track
        self.extraValue = extraValue
    }
}

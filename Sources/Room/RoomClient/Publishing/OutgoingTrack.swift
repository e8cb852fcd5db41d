package import ClientCore
package import MediaGraph
package import RoomProtocol

/// One encoded stream, published in one room.
///
/// All members are callable on any thread.
package protocol OutgoingTrack: EncodedTrack, Sendable {
    /// Connects the track to a room. Nil drops its packets.
    func connect(_ receiver: TrackReceiver?)
}

/// The room that a track is connected to.
package struct TrackReceiver: Sendable {
    /// Takes the packets of each encoded frame, on an encoder's thread.
    package var take: @Sendable (RTPBatch) -> Void
    /// Called after each change of the track's `streamState`, on any thread.
    package var stateChanged: @Sendable () -> Void
}

extension OutgoingTrack {
    package func disconnect() { connect(nil) }
}

/// A track and its published properties.
package struct Publication: Sendable {
    package var track: any OutgoingTrack
    package var attributes: StreamAttributes
    /// Whether the server is to record it.
    package var isRecorded: Bool

    package init(
        _ track: any OutgoingTrack, _ attributes: StreamAttributes = StreamAttributes(), isRecorded: Bool = false
    ) {
        self.track = track
        self.attributes = attributes
        self.isRecorded = isRecorded
    }
}

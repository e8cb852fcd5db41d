package import ClientCore
package import MediaGraph

/// One encoded stream to publish, from a `LocalCapture` or a node of a graph.
///
/// All members are callable on any thread.
package protocol OutgoingTrack: EncodedTrack, Sendable {
    /// Passes the packets of each encoded frame to `receiver`, on an encoder's thread. Nil drops them.
    func connect(_ receiver: (@Sendable (RTPBatch) -> Void)?)
}

extension OutgoingTrack {
    package func disconnect() { connect(nil) }
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

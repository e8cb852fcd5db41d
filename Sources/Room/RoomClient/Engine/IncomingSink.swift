package import RTP
package import RoomProtocol

/// Where the packets of one received stream go: into the pipeline that the engine makes, or a node of a graph.
///
/// Everything is called on the engine's loop: return soon.
package protocol IncomingSink: AnyObject {
    /// A receiver carries the stream from now on.
    func begin(_ stream: IncomingStream)
    /// One decrypted packet, in the order in which they came. Retransmitted ones are late but whole.
    func receive(_ packet: Span<UInt8>)
    /// The publisher's stream was at `rtp` when its wall clock showed `ntp`.
    func senderReport(ntp: NTPTime, rtp: RTPTimestamp)
    /// Adds what was counted behind the sink.
    func fill(_ statistics: inout RoomStatistics.Received)
    /// The stream is over, or goes on in another receiver, which begins anew.
    func end()
}

extension IncomingSink {
    package func senderReport(ntp: NTPTime, rtp: RTPTimestamp) {}
    package func fill(_ statistics: inout RoomStatistics.Received) {}
}

/// A stream as a sink gets it.
package struct IncomingStream: Sendable {
    /// Unique in the server's lifetime.
    package var id: Int
    package var participant: String
    package var codec: Codec
    /// What the stream's packets carry; no others are handed over.
    package var payloadType: UInt8
    /// Asks the publisher for a keyframe, from any thread.
    package var requestKeyframe: @Sendable () -> Void
}

/// What a received stream is for.
package enum StreamDestination: Sendable {
    /// Pictures, decoded by the engine.
    case frames(FrameFanout)
    /// Sound, decoded by the engine; heard, or measured only.
    case sound(isAudible: Bool)
    /// Packets, for somebody else to decode.
    case packets(any IncomingSink & Sendable)
}

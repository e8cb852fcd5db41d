package import RTP
package import RoomProtocol

/// The destination of a received stream's packets: the engine's pipeline, or a node of a graph.
///
/// All methods are called on the engine's loop and must return soon.
package protocol IncomingSink: AnyObject {
    /// A receiver carries the stream.
    func begin(_ stream: IncomingStream)
    /// Receives one decrypted packet, in order of arrival. Retransmitted packets arrive late.
    func receive(_ packet: Span<UInt8>)
    /// The publisher's RTP timestamp was `rtp` when its wall clock showed `ntp`.
    func senderReport(ntp: NTPTime, rtp: RTPTimestamp)
    /// Adds the counters downstream of the sink.
    func fill(_ statistics: inout RoomStatistics.Received)
    /// The stream ended, or continues in another receiver with a new `begin`.
    func end()
}

extension IncomingSink {
    package func senderReport(ntp: NTPTime, rtp: RTPTimestamp) {}
    package func fill(_ statistics: inout RoomStatistics.Received) {}
}

/// A stream as passed to a sink.
package struct IncomingStream: Sendable {
    /// Unique in the server's lifetime.
    package var id: Int
    package var participant: String
    package var codec: Codec
    /// The payload type of the stream's packets. The sink receives no others.
    package var payloadType: UInt8
    /// Requests a keyframe from the publisher. Callable on any thread.
    package var requestKeyframe: @Sendable () -> Void
}

/// How to use a received stream.
package enum StreamDestination: Sendable {
    /// Video frames, decoded by the engine.
    case frames(FrameFanout)
    /// Audio, decoded by the engine and either played or only measured.
    case sound(isAudible: Bool)
    /// Encoded packets.
    case packets(any IncomingSink & Sendable)
}

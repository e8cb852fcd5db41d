package import RTP
package import RoomProtocol

/// The destination of a received stream's packets, such as a decoding pipeline or a node of a graph.
///
/// All methods are called on the connection's loop and must return soon.
package protocol IncomingSink: AnyObject {
    /// A receiver carries the stream.
    func begin(_ stream: IncomingStream)
    /// Receives one decrypted packet with its header extension, in order of arrival. Retransmitted packets arrive late.
    func receive(_ packet: Span<UInt8>)
    /// The age of the stream's frames is told by another clock from now on.
    func clockChanged(_ clock: StreamClock)
    /// Called about twice a second, to measure rates.
    func sample(now: MonotonicTime)
    /// Frames of video that were decoded so far.
    var framesDecoded: Int { get }
    /// Adds the counters downstream of the sink.
    func fill(_ statistics: inout RoomStatistics.Received)
    /// How many packets the sink takes of those that arrived before the message that assigned the stream: the newest. Nil for all.
    var backlog: Int? { get }
    /// The stream ended, or continues in another receiver with a new `begin`.
    func end()
}

extension IncomingSink {
    package func clockChanged(_ clock: StreamClock) {}
    package func sample(now: MonotonicTime) {}
    package var framesDecoded: Int { 0 }
    package var backlog: Int? { nil }
    package func fill(_ statistics: inout RoomStatistics.Received) {}
}

/// A stream as passed to a sink. `RoomConnection.requestKeyframe(of:)` requests its keyframes.
package struct IncomingStream: Sendable {
    /// Unique in the server's lifetime.
    package var id: Int
    package var server: ServerAddress
    package var participant: String
    package var codec: Codec
    /// The payload type of the stream's packets. The sink receives no others.
    package var payloadType: UInt8
    /// When the connection to the room began.
    package var connectStarted: MonotonicTime

    package init(
        id: Int, server: ServerAddress, participant: String, codec: Codec, payloadType: UInt8,
        connectStarted: MonotonicTime
    ) {
        self.id = id
        self.server = server
        self.participant = participant
        self.codec = codec
        self.payloadType = payloadType
        self.connectStarted = connectStarted
    }
}

/// Returns the sink of a stream each time that a receiver begins to carry it. Called on the loop; `begin` follows.
package typealias SinkSource = (IncomingStream) -> any IncomingSink

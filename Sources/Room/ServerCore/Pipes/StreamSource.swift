internal import CongestionControl
internal import PeerLoop
internal import PeerSession

/// The origin of a stream's packets: its publisher's session, or a pipe from another part of the room.
protocol StreamSource {
    /// Whether a keyframe can be requested. If not, the stream's packets cause the request later.
    var isReady: Bool { get }
    func requestKeyframe()
    /// The best link of those that the stream takes from here carries so much of it.
    func carried(_ part: Carried)
    /// The stream has its first consumer.
    func begin()
    /// The stream has lost its last consumer.
    func pause()
}

/// A receiver of the publisher's up session.
struct SessionSource: StreamSource {
    let peer: Peer
    let receiver: ReceiverID
    /// Tells the publisher the rate of its media that the best link carries. Nil if that is all of it.
    let tellLimit: (Int?) -> Void

    var isReady: Bool { peer.isSecured }
    func requestKeyframe() { peer.requestKeyframe(receiver) }
    func carried(_ part: Carried) { tellLimit(part.part.map { Int(PathRate.media(onPath: $0)) }) }
    func begin() {}
    func pause() {}
}

/// A stream of another part of the room. It flows only while it has a consumer here.
struct PipeSource: StreamSource {
    let pipe: Pipe
    let stream: Int

    var isReady: Bool { true }
    func requestKeyframe() { pipe.send(.keyframe(stream)) }
    func carried(_ part: Carried) { pipe.send(.carried(stream, part)) }
    func begin() { pipe.send(.wanted(stream)) }
    func pause() { pipe.send(.unwanted(stream)) }
}

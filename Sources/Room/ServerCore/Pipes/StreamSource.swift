internal import CongestionControl
internal import PeerLoop
internal import PeerSession

/// The origin of a stream's packets: its publisher's session, or a pipe from another part of the room.
protocol StreamSource {
    /// Whether a keyframe can be requested. If not, the stream's packets cause the request later.
    var isReady: Bool { get }
    func requestKeyframe()
    /// Those who receive the stream can take so much of it, in bits per second of the path. Nil without a limit.
    func limit(bitsPerSecond: Double?)
    /// The stream has its first consumer.
    func begin()
    /// The stream has lost its last consumer.
    func pause()
}

/// A receiver of the publisher's up session.
struct SessionSource: StreamSource {
    let peer: Peer
    let receiver: ReceiverID
    /// Tells the publisher the rate of its media.
    let tellLimit: (Int?) -> Void

    var isReady: Bool { peer.isSecured }
    func requestKeyframe() { peer.requestKeyframe(receiver) }
    func limit(bitsPerSecond: Double?) { tellLimit(bitsPerSecond.map { Int(PathRate.media(onPath: $0)) }) }
    func begin() {}
    func pause() {}
}

/// A stream of another part of the room. It flows only while it has a consumer here.
struct PipeSource: StreamSource {
    let pipe: Pipe
    let stream: Int

    var isReady: Bool { true }
    func requestKeyframe() { pipe.send(.keyframe(stream)) }
    func limit(bitsPerSecond: Double?) { pipe.send(.limit(stream, bitsPerSecond)) }
    func begin() { pipe.send(.wanted(stream)) }
    func pause() { pipe.send(.unwanted(stream)) }
}

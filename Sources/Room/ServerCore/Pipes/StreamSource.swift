internal import CongestionControl
internal import PeerLoop
internal import PeerSession

/// The origin of a layer's packets: its publisher's session, or a pipe from another part of the room.
protocol StreamSource {
    /// Whether a keyframe can be requested. If not, the layer's packets cause the request later.
    var isReady: Bool { get }
    /// Whether the limit goes to the publisher, rather than to another part of the room, which may have others.
    var isPublisher: Bool { get }
    func requestKeyframe()
    /// The best link of those that the stream takes from here carries so much of it, and nobody watches other layers than
    /// these. Nil means all. Told by one layer for all.
    func limit(to part: Carried, watched: [Int]?)
    /// The layer has its first consumer.
    func begin()
    /// The layer has lost its last consumer.
    func pause()
}

/// A receiver of the publisher's up session.
struct SessionSource: StreamSource {
    let peer: Peer
    let receiver: ReceiverID
    /// Tells the publisher the rate of its media that the best link carries, nil if that is all of it, and the watched
    /// layers, nil for all.
    let tellLimit: (Int?, [Int]?) -> Void

    var isReady: Bool { peer.isSecured }
    var isPublisher: Bool { true }
    func requestKeyframe() { peer.requestKeyframe(receiver) }
    func limit(to part: Carried, watched: [Int]?) {
        tellLimit(part.part.map { Int(PathRate.media(onPath: $0)) }, watched)
    }
    func begin() {}
    func pause() {}
}

/// A layer of a stream of another part of the room. It flows only while it has a consumer here.
struct PipeSource: StreamSource {
    let pipe: Pipe
    let layer: StreamLayerID

    var isReady: Bool { true }
    var isPublisher: Bool { false }
    func requestKeyframe() { pipe.send(.keyframe(layer)) }
    func limit(to part: Carried, watched: [Int]?) { pipe.send(.carried(layer.stream, part)) }
    func begin() { pipe.send(.wanted(layer)) }
    func pause() { pipe.send(.unwanted(layer)) }
}

internal import PeerIO
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// One published stream: what comes in on a receiver of its publisher's up session, and who it goes to. On the loop
/// only.
final class PublishedStream {
    let info: StreamInfo
    let codec: Codec
    let participant: String
    var consumers: [Consumer] = []
    /// Ties the timestamps of the current epoch to the publisher's wall clock.
    private(set) var clock: SenderClock?
    private let peer: Peer
    private let receiver: ReceiverID
    private var newest: StreamPosition?
    private var lastKeyframeRequest = MonotonicTime.zero

    /// How long after asking for a keyframe one asks again while somebody still waits for it.
    private static let keyframeRetry = TimeInterval.milliseconds(300)

    init(_ info: StreamInfo, codec: Codec, participant: String, peer: Peer, receiver: ReceiverID) {
        self.info = info
        self.codec = codec
        self.participant = participant
        self.peer = peer
        self.receiver = receiver
    }

    /// Sends one packet on to every consumer. Nothing here allocates, locks or awaits.
    func forward(_ packet: borrowing PacketBuffer, header: RTPHeader, at position: StreamPosition) {
        let isNewest = advance(to: position)
        guard !consumers.isEmpty else { return }
        guard header.payloadLength > 0,
            let payload = PayloadDescriptor(parsing: packet, header: header, as: codec.payload)
        else {
            for consumer in consumers { consumer.leaveOut(packet, header, at: position) }
            return
        }
        let now = EventLoop.now
        let arrived = Splice.Packet(
            position: position, timestamp: header.timestamp, isNewest: isNewest, payload: payload)
        var isAwaited = false
        for consumer in consumers {
            consumer.forward(packet, header, arrived, now: now)
            if consumer.isAwaitingStart { isAwaited = true }
        }
        if isAwaited, codec.media == .video, now - lastKeyframeRequest > Self.keyframeRetry { requestKeyframe() }
    }

    /// Whether nothing later of its epoch came before the packet at this position.
    private func advance(to position: StreamPosition) -> Bool {
        guard let newest else {
            newest = position
            return true
        }
        if position.epoch != newest.epoch { beginEpoch() }
        guard position.epoch != newest.epoch || position.number > newest.number else { return false }
        self.newest = position
        return true
    }

    /// The publisher's stream began anew: consumers join it at its next keyframe, which is due at once.
    private func beginEpoch() {
        clock = nil
        lastKeyframeRequest = .zero
        for consumer in consumers { consumer.forgetClock() }
    }

    /// Asks the publisher for a keyframe; the session below sends at most one request in 200 ms.
    func requestKeyframe() {
        guard codec.media == .video else { return }
        lastKeyframeRequest = EventLoop.now
        peer.requestKeyframe(receiver)
    }

    func setClock(_ clock: SenderClock) {
        self.clock = clock
        for consumer in consumers { consumer.setClock(clock) }
    }
}

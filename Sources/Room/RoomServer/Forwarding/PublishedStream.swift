internal import PeerIO
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// One published stream: what comes in on a receiver of its publisher's up session, and who it goes to. On the loop
/// only.
final class PublishedStream {
    /// The publisher's clock: on its wall it was `ntp` when the stream was at `rtp`.
    struct Clock {
        var ntp: NTPTime
        var rtp: RTPTimestamp
        var time: MonotonicTime
    }

    let info: StreamInfo
    let codec: Codec
    let participant: String
    var consumers: [Consumer] = []
    private(set) var clock: Clock?
    private let peer: Peer
    private let receiver: ReceiverID
    private var newest: SequenceNumber?
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
    func forward(_ packet: borrowing PacketBuffer, header: RTPHeader) {
        let isNewest = newest.map { header.sequenceNumber.isNewer(than: $0) } ?? true
        if isNewest { newest = header.sequenceNumber }
        guard !consumers.isEmpty, header.payloadLength > 0 else { return }
        let now = EventLoop.now
        var forwarded = ForwardedPacket(header: header, isNewest: isNewest, isKeyframeStart: false, vp8: nil)
        switch codec {
        case .vp8:
            guard let descriptor = VP8PayloadDescriptor(parsing: packet, header: header) else { return }
            forwarded.vp8 = descriptor
            forwarded.isKeyframeStart = descriptor.isKeyframeStart
        case .h264: forwarded.isKeyframeStart = H264Payload.isKeyframeStart(packet, header: header)
        case .opus: break
        }
        var isAwaited = false
        for consumer in consumers {
            consumer.forward(packet, forwarded, now: now)
            if consumer.isAwaitingStart { isAwaited = true }
        }
        if isAwaited, codec.media == .video, now - lastKeyframeRequest > Self.keyframeRetry { requestKeyframe() }
    }

    /// Asks the publisher for a keyframe; the session below sends at most one request in 200 ms.
    func requestKeyframe() {
        guard codec.media == .video else { return }
        lastKeyframeRequest = EventLoop.now
        peer.requestKeyframe(receiver)
    }

    func setClock(_ clock: Clock) {
        self.clock = clock
        for consumer in consumers { consumer.setClock() }
    }
}

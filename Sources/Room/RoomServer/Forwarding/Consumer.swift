internal import PeerIO
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// One receiver of somebody's down session: an m-line that carries the stream assigned to it. On the loop only.
final class Consumer {
    let receiver: Receiver
    private let peer: Peer
    private let sender: SenderID
    private var rewriter = StreamRewriter()
    /// The codecs that the client's answer takes for this m-line; nil until it has answered.
    private(set) var accepted: [NegotiatedCodec]?
    private(set) var stream: PublishedStream?

    init(_ receiver: Receiver, peer: Peer, cacheCapacity: Int) {
        self.receiver = receiver
        self.peer = peer
        let codecs = Codec.of(receiver.media)
        sender = peer.addSender(
            SenderConfiguration(
                kind: receiver.media == .audio ? .audio : .video, ssrc: receiver.ssrc,
                retransmissionSSRC: receiver.retransmissionSSRC, clockRate: receiver.media == .audio ? 48000 : 90000,
                retransmissionPayloadTypes: Dictionary(
                    uniqueKeysWithValues: codecs.compactMap { codec in
                        codec.retransmissionPayloadType.map { (codec.payloadType, $0) }
                    }),
                mid: receiver.mid, cacheCapacity: receiver.media == .audio ? 0 : cacheCapacity))
    }

    var isFree: Bool { stream == nil }
    /// Whether a keyframe of the stream would be sent on.
    var isAwaitingStart: Bool { rewriter.isAwaitingStart }

    func owns(_ sender: SenderID) -> Bool { self.sender == sender }

    /// What the client's answer takes.
    func accept(_ codecs: [NegotiatedCodec]) {
        accepted = codecs
        beginIfPossible()
    }

    /// The session can send from here on.
    func secured() { beginIfPossible() }

    /// Whether the client can decode the codec; true as long as it has not said.
    func canCarry(_ codec: Codec) -> Bool { accepted.map { $0.contains { $0.codec == codec } } ?? true }

    func assign(_ stream: PublishedStream) {
        release()
        self.stream = stream
        stream.consumers.append(self)
        beginIfPossible()
    }

    func release() {
        guard let stream else { return }
        stream.consumers.removeAll { $0 === self }
        self.stream = nil
        rewriter.end()
    }

    /// The path of a packet: everything here happens for each packet and each subscriber.
    @inline(__always)
    func forward(_ packet: borrowing PacketBuffer, _ forwarded: ForwardedPacket, now: MonotonicTime) {
        let wasAwaitingStart = rewriter.isAwaitingStart
        guard let rewrite = rewriter.rewrite(forwarded, now: now) else { return }
        peer.send(packet, header: forwarded.header, rewrite: rewrite, via: sender)
        if wasAwaitingStart { setClock() }
    }

    /// Passes the publisher's clock on, so that the subscriber can tell capture times and keep lips in step.
    func setClock() {
        guard let clock = stream?.clock, let offset = rewriter.timestampOffset else { return }
        peer.setClock(sender, ntp: clock.ntp, rtp: clock.rtp.advanced(by: offset), at: clock.time)
    }

    private func beginIfPossible() {
        guard peer.isSecured, let stream, let negotiated = accepted?.first(where: { $0.codec == stream.codec }) else {
            return
        }
        rewriter.begin(stream.codec, payloadType: negotiated.payloadType)
        stream.requestKeyframe()
    }
}

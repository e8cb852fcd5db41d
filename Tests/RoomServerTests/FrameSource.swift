import PeerIO
import PeerLoop
import PeerSession
import RTP
import RoomProtocol

/// Sends a frame of synthetic VP8 every 2 ms, one packet each, with the frame's number in it. A frame is a keyframe if
/// one was requested. On its loop only.
final class FrameSource {
    struct Frame: Equatable, Sendable {
        var sequenceNumber: SequenceNumber
        var timestamp: RTPTimestamp
        /// How often the source has restarted.
        var source: Int
        var number: Int
        var isKeyframe: Bool

        /// Nil for a packet that no source sent.
        init?(_ header: RTPHeader, _ packet: borrowing PacketBuffer) {
            let at = header.payloadOffset
            guard header.payloadLength == 5, packet.bytes[at] == FrameSource.descriptor else { return nil }
            sequenceNumber = header.sequenceNumber
            timestamp = header.timestamp
            source = Int(packet.bytes[at + 2])
            number = Int(packet.bytes[at + 3]) << 8 | Int(packet.bytes[at + 4])
            isKeyframe = packet.bytes[at + 1] & 1 == 0
        }
    }

    /// The id of the extension that the source's publisher negotiates.
    static let midExtension: UInt8 = 4
    /// The VP8 payload descriptor (RFC 7741 section 4.2): the start of a partition, and nothing else.
    private static let descriptor: UInt8 = 0x10

    private let session: MediaSession
    private let loop: EventLoop
    private var sender: SenderID
    private var number: SequenceNumber
    private var frame = 0
    private var source = 0
    private var isKeyframeWanted = true
    private var timer: LoopTimer?
    private var uncut: LoopTimer?

    /// - Parameter number: the sequence number before the first.
    init(_ session: MediaSession, loop: EventLoop, first number: UInt16) {
        self.session = session
        self.loop = loop
        self.number = SequenceNumber(number)
        sender = session.senders[0]
        session.onKeyframeRequest = { [unowned self] in isKeyframeWanted = true }
        timer = loop.makeTimer { [unowned self] in
            sendPacket()
            timer?.arm(at: loop.now + .milliseconds(2))
        }
        timer?.arm(at: loop.now)
    }

    func stop() {
        session.onKeyframeRequest = nil
        timer?.disarm()
        uncut?.disarm()
        (timer, uncut) = (nil, nil)
    }

    /// Continues under another SSRC, with other numbers, and without a keyframe until one is requested.
    func beginAnew(_ ssrc: UInt32, step: Int) {
        source += 1
        isKeyframeWanted = false
        number = number.advanced(by: step)
        session.addSender(.vp8, SSRC(ssrc), mid: "0", midExtension: Self.midExtension)
        sender = session.senders[session.senders.count - 1]
    }

    /// Advances the numbers so far, during a cut, that the receiver's SRTP mistakes the rollover counter.
    func loseCount() {
        session.peer.impairment = .cut
        for _ in 0..<2 {
            number = number.advanced(by: 20_000)
            sendPacket()
        }
        // The packets are sent, into the cut, at the end of this turn.
        uncut = loop.schedule(after: .milliseconds(20)) { [unowned self] in session.peer.impairment = nil }
    }

    private func sendPacket() {
        number = number.advanced(by: 1)
        frame += 1
        var packet = PacketBuffer()
        let identity = [UInt8(source), UInt8(frame >> 8 & 0xff), UInt8(frame & 0xff)]
        _ = packet.assignRTP(
            payloadType: Codec.vp8.payloadType, sequenceNumber: number,
            timestamp: RTPTimestamp(UInt32(source * 1_000_000 + frame * 180)), ssrc: SSRC(0), marker: true,
            payload: [Self.descriptor, isKeyframeWanted ? 0 : 1] + identity)
        session.send(packet, via: sender)
        isKeyframeWanted = false
    }
}

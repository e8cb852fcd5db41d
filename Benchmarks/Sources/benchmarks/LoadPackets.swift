internal import PeerIO
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// The packets that a load publisher sends: VP8 by their descriptors, numbers by their contents, so that a receiver
/// can tell whether each came, once, and unharmed. Opus has no descriptor, and the same bytes as its payload.
enum LoadPacket {
    /// Whole RTP packet of video, without SRTP's trailer.
    static let length = 1200
    /// Of Opus at about 32 kbit/s, likewise.
    static let audioLength = 92
    static let clockRate = 90_000
    /// Descriptor (RFC 7741 section 4.2): X, then I, then a picture id of 15 bits.
    private static let descriptorLength = 4
    /// Where the packet's number lies, from the start of the payload: behind the descriptor and the byte that says
    /// whether a frame is a keyframe.
    static let numberOffset = descriptorLength + 1

    /// Where the time of sending lies, likewise: nanoseconds of the monotonic clock.
    static let timeOffset = numberOffset + 8

    struct Position {
        /// Counts all packets of the stream from 0.
        var number: UInt64
        var frame: UInt64
        var isFirst: Bool
        var isLast: Bool
        var isKeyframe: Bool
    }

    static func write(
        _ position: Position, at time: MonotonicTime = .zero, ssrc: SSRC, payloadType: UInt8,
        frameDuration: UInt32 = UInt32(clockRate / 30), length: Int = LoadPacket.length, into packet: inout PacketBuffer
    ) {
        packet.bytes[0] = 0x80
        packet.bytes[1] = (position.isLast ? 0x80 : 0) | payloadType
        packet.setUInt16(UInt16(truncatingIfNeeded: position.number), at: 2)
        packet.setUInt32(UInt32(truncatingIfNeeded: position.frame) &* frameDuration, at: 4)
        packet.setUInt32(ssrc.rawValue, at: 8)
        let payload = RTPHeader.minimumLength
        packet.bytes[payload] = position.isFirst ? 0x90 : 0x80
        packet.bytes[payload + 1] = 0x80
        packet.setUInt16(0x8000 | UInt16(position.frame & 0x7fff), at: payload + 2)
        // The P bit of the frame header is clear in a keyframe (RFC 7741 section 4.3).
        packet.bytes[payload + descriptorLength] = position.isKeyframe ? 0 : 1
        packet.setUInt32(UInt32(truncatingIfNeeded: position.number >> 32), at: payload + numberOffset)
        packet.setUInt32(UInt32(truncatingIfNeeded: position.number), at: payload + numberOffset + 4)
        packet.setUInt64(time.nanoseconds, at: payload + timeOffset)
        packet.count = length
    }

    static func isKeyframeStart(_ packet: borrowing PacketBuffer, _ header: RTPHeader) -> Bool {
        packet.bytes[header.payloadOffset] == 0x90 && packet.bytes[header.payloadOffset + descriptorLength] & 1 == 0
    }

    static func sendTime(of packet: borrowing PacketBuffer, _ header: RTPHeader) -> MonotonicTime {
        MonotonicTime(nanoseconds: packet.uint64(at: header.payloadOffset + timeOffset))
    }
}

/// Whether a receiver got every packet once, in order, and as it was sent.
struct SequenceCheck: Sendable {
    /// Of a whole packet.
    let length: Int
    /// Packets that came.
    private(set) var received = 0
    /// Numbers passed over and not seen since.
    private(set) var missing = 0
    /// Packets that came after a later one.
    private(set) var late = 0
    /// Packets whose length, number or numbering is wrong.
    private(set) var corrupted = 0
    private(set) var last: UInt64?
    private var offset: UInt16?

    init(length: Int) { self.length = length }

    mutating func take(_ packet: borrowing PacketBuffer, _ header: RTPHeader) {
        received += 1
        let at = header.payloadOffset + LoadPacket.numberOffset
        guard header.payloadLength == length - RTPHeader.minimumLength else {
            corrupted += 1
            return
        }
        let number = packet.uint64(at: at)
        // A server may shift sequence numbers, all by the same.
        let shift = header.sequenceNumber.rawValue &- UInt16(truncatingIfNeeded: number)
        if let offset, offset != shift { corrupted += 1 }
        offset = shift
        guard let last else {
            self.last = number
            return
        }
        if number > last {
            missing += Int(number - last) - 1
            self.last = number
        } else {
            late += 1
            missing -= 1
        }
    }

    /// Adds the counts of another receiver.
    mutating func add(_ other: SequenceCheck) {
        received += other.received
        missing += other.missing
        late += other.late
        corrupted += other.corrupted
    }
}

/// Sends bursts of packets on a loop at even distances, as an encoder sends the packets of a frame.
final class PacketSource {
    private let loop: EventLoop
    private let peer: Peer
    private let sender: SenderID
    private let ssrc: SSRC
    private let codec: Codec
    private let length: Int
    private var packet = PacketBuffer()
    private var timer: LoopTimer?
    private var frame: UInt64 = 0
    private var isKeyframeWanted = true
    private var bursts = 0
    private var burstLength = 0
    private var interval = TimeInterval.zero
    private var due = MonotonicTime.zero
    private var finished: (() -> Void)?
    /// Called with each packet's number before it is sent.
    var onSend: ((UInt64) -> Void)?
    private(set) var sent: UInt64 = 0
    private(set) var keyframes = 0

    /// - Parameter length: of a whole packet, in bytes.
    init(loop: EventLoop, peer: Peer, sender: SenderID, ssrc: SSRC, codec: Codec, length: Int) {
        self.loop = loop
        self.peer = peer
        self.sender = sender
        self.ssrc = ssrc
        self.codec = codec
        self.length = length
        timer = loop.makeTimer { [unowned self] in self.sendBurst() }
    }

    func keyframeRequested() { isKeyframeWanted = true }

    /// Sends `bursts` bursts of `length` packets, `interval` apart, then calls `finished`.
    func run(
        bursts: Int, length: Int, interval: TimeInterval, after delay: TimeInterval, finished: @escaping () -> Void
    ) {
        self.bursts = bursts
        burstLength = length
        self.interval = interval
        self.finished = finished
        due = loop.now + delay
        timer?.arm(at: due)
    }

    func stop() {
        timer?.disarm()
        finished?()
        finished = nil
    }

    private func sendBurst() {
        let isKeyframe = isKeyframeWanted
        // A frame of Opus lasts 20 ms.
        let duration = codec.clockRate / (codec.media == .audio ? 50 : 30)
        isKeyframeWanted = false
        keyframes += isKeyframe ? 1 : 0
        for index in 0..<burstLength {
            let position = LoadPacket.Position(
                number: sent, frame: frame, isFirst: index == 0, isLast: index == burstLength - 1,
                isKeyframe: isKeyframe)
            LoadPacket.write(
                position, at: loop.now, ssrc: ssrc, payloadType: codec.payloadType, frameDuration: duration,
                length: length, into: &packet)
            if let header = RTPHeader(parsing: packet) {
                onSend?(sent)
                peer.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender)
            }
            sent += 1
        }
        frame += 1
        bursts -= 1
        guard bursts > 0 else {
            finished?()
            finished = nil
            return
        }
        due = due + interval
        timer?.arm(at: due)
    }
}
